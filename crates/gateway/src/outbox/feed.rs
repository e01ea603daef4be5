//! The statuses of an outbox: the snapshot, and later changes.

use domain::UserId;
use hashbrown::HashMap;
use presence::WallTime;
use wire::websocket::write_text_head;

use super::FeedUser;

/// One message brings statuses up to about this; the rest follows in further messages. SDKs take a megabyte at least.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Memory of a waiting change besides its JSON.
const ENTRY_BYTES: usize = 72;

#[derive(Default)]
pub(super) struct Feed {
    has_begun: bool,
    /// Whether the first message of the snapshot is still to be written.
    is_first: bool,
    /// The rest of the snapshot, in reverse order.
    snapshot: Vec<FeedUser>,
    changes: Changes,
    is_urgent: bool,
    bytes: usize,
}

/// Waiting changes. Mostly none or one, without a table.
#[derive(Default)]
enum Changes {
    #[default]
    None,
    One(UserId, Change),
    Many(Box<HashMap<UserId, Change, foldhash::fast::RandomState>>),
}

/// A change of a user, with its time. Users of a snapshot have no time.
enum Change {
    Updated(FeedUser, Option<WallTime>),
    Removed(WallTime),
}

impl Change {
    fn at(&self) -> Option<WallTime> {
        match self {
            Change::Updated(_, at) => *at,
            Change::Removed(at) => Some(*at),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Change::Updated(user, _) => user.json.len() + ENTRY_BYTES,
            Change::Removed(_) => ENTRY_BYTES,
        }
    }
}

impl Feed {
    /// Begins with a snapshot: of the waiting changes, only newer ones stay.
    pub(super) fn begin(&mut self, mut users: Vec<FeedUser>) {
        for user in &users {
            let is_old = match self.changes.get(user.id) {
                // A user who became invisible stays so, whatever the snapshot contains; and the same version may have
                // another visibility.
                Some(Change::Updated(waiting, _)) => waiting.version != 0 && waiting.version < user.version,
                Some(Change::Removed(_)) | None => false,
            };
            if is_old && let Some(change) = self.changes.take(user.id) {
                self.bytes -= change.bytes();
            }
        }
        users.reverse();
        self.snapshot = users;
        self.is_first = true;
        self.has_begun = true;
    }

    pub(super) fn has_snapshot(&self) -> bool {
        self.is_first || !self.snapshot.is_empty()
    }

    /// Bytes of waiting changes, without the snapshot.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Nothing (0), something (1) or something urgent (2) may be written.
    pub(super) fn urgency(&self) -> u8 {
        match (&self.changes, self.has_begun && !self.has_snapshot()) {
            (Changes::None, _) | (_, false) => 0,
            (_, true) => 1 + u8::from(self.is_urgent),
        }
    }

    /// Returns whether no change of this user was waiting.
    pub(super) fn change(&mut self, user: FeedUser, urgent: bool, at: WallTime) -> bool {
        self.is_urgent |= urgent;
        match self.changes.get(user.id) {
            Some(Change::Updated(waiting, _)) if user.version != 0 && waiting.version > user.version => false,
            _ => self.put(user.id, Change::Updated(user, Some(at))),
        }
    }

    pub(super) fn remove(&mut self, user: UserId, at: WallTime) {
        self.is_urgent = true;
        self.put(user, Change::Removed(at));
    }

    /// Cancels a waiting removal.
    pub(super) fn show_again(&mut self, user: FeedUser) {
        if let Some(Change::Removed(at)) = self.changes.get(user.id) {
            let at = Some(*at);
            self.put(user.id, Change::Updated(user, at));
        }
    }

    fn put(&mut self, user: UserId, change: Change) -> bool {
        self.bytes += change.bytes();
        match self.changes.put(user, change) {
            Some(replaced) => {
                self.bytes -= replaced.bytes();
                false
            }
            None => true,
        }
    }

    /// Writes one message: of the snapshot, or else of the changes. Returns the number of users in it.
    pub(super) fn write(&mut self, to: UserId, out: &mut Vec<u8>) -> usize {
        if self.has_snapshot() {
            let kind = if std::mem::take(&mut self.is_first) { "snapshot" } else { "changes" };
            let some = self.some_of_snapshot();
            // `more` is set on all messages of a snapshot but the last, so that clients do not drop users too early.
            let more = !self.snapshot.is_empty();
            return write_message(to, Head { kind, more }, &some, out);
        }
        let some = self.changes.take_some();
        self.bytes -= some.iter().map(|(_, change)| change.bytes()).sum::<usize>();
        // The rest of a long list stays as urgent as it was.
        self.is_urgent &= !matches!(self.changes, Changes::None);
        write_message(to, Head { kind: "changes", more: false }, &some, out)
    }

    fn some_of_snapshot(&mut self) -> Vec<(UserId, Change)> {
        let (mut some, mut bytes) = (Vec::new(), 0);
        while bytes < MESSAGE_BYTES_MAX
            && let Some(user) = self.snapshot.pop()
        {
            bytes += user.json.len();
            some.push((user.id, Change::Updated(user, None)));
        }
        if self.snapshot.is_empty() {
            self.snapshot = Vec::new();
        }
        some
    }
}

impl Changes {
    fn get(&self, user: UserId) -> Option<&Change> {
        match self {
            Changes::One(one, change) if *one == user => Some(change),
            Changes::Many(many) => many.get(&user),
            Changes::None | Changes::One(..) => None,
        }
    }

    /// Returns the replaced change.
    fn put(&mut self, user: UserId, change: Change) -> Option<Change> {
        match self {
            Changes::None => *self = Changes::One(user, change),
            Changes::One(one, waiting) if *one == user => return Some(std::mem::replace(waiting, change)),
            Changes::One(..) => {
                let Changes::One(one, waiting) = std::mem::take(self) else { return None };
                let many = [(one, waiting), (user, change)].into_iter().collect();
                *self = Changes::Many(Box::new(many));
            }
            Changes::Many(many) => return many.insert(user, change),
        }
        None
    }

    fn take(&mut self, user: UserId) -> Option<Change> {
        match self {
            Changes::One(one, _) if *one == user => match std::mem::take(self) {
                Changes::One(_, change) => Some(change),
                Changes::None | Changes::Many(_) => None,
            },
            Changes::Many(many) => {
                let change = many.remove(&user);
                if many.is_empty() {
                    *self = Changes::None;
                }
                change
            }
            Changes::None | Changes::One(..) => None,
        }
    }

    /// Takes as many as go into one message.
    fn take_some(&mut self) -> Vec<(UserId, Change)> {
        let many = match std::mem::take(self) {
            Changes::None => return Vec::new(),
            Changes::One(one, change) => return vec![(one, change)],
            Changes::Many(many) => many,
        };
        let (mut some, mut bytes) = (Vec::new(), 0);
        let mut rest = many.into_iter();
        while bytes < MESSAGE_BYTES_MAX
            && let Some((user, change)) = rest.next()
        {
            bytes += change.bytes();
            some.push((user, change));
        }
        if rest.len() > 0 {
            *self = Changes::Many(Box::new(rest.collect()));
        }
        some
    }
}

struct Head {
    kind: &'static str,
    /// The snapshot continues in the next message.
    more: bool,
}

/// Writes one message with its WebSocket header. Each change has its own time, and the message the latest of them.
fn write_message(
    to: UserId,
    Head { kind, more }: Head,
    changes: &[(UserId, Change)],
    out: &mut Vec<u8>,
) -> usize {
    let beginning =
        format!(r#"{{"push":{{"channel":"feed:#{to}","pub":{{"data":{{"type":"{kind}","users":["#);
    let mut shown: Vec<(&str, String)> = Vec::with_capacity(changes.len());
    let mut removed: Vec<String> = Vec::new();
    for (user, change) in changes {
        match change {
            Change::Updated(user, at) => shown.push(stamped(&user.json, *at)),
            Change::Removed(_) => removed.push(format!("\"{user}\"")),
        }
    }
    let removed = match removed.is_empty() {
        true => String::new(),
        false => format!(r#","removed":[{}]"#, removed.join(",")),
    };
    let more = if more { r#","more":true"# } else { "" };
    let latest = changes.iter().filter_map(|(_, change)| change.at()).max();
    let at = latest.map_or_else(String::new, |at| format!(r#","at_ms":{}"#, at.0));
    let end = format!("]{removed}{more}{at}}}}}}}}}");
    let commas = shown.len().saturating_sub(1);
    let content: usize = shown.iter().map(|(json, stamp)| json.len() + stamp.len()).sum();
    let length = beginning.len() + content + commas + end.len();
    out.reserve(length + 10);
    write_text_head(out, length);
    out.extend_from_slice(beginning.as_bytes());
    for (place, (json, stamp)) in shown.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(json.as_bytes());
        out.extend_from_slice(stamp.as_bytes());
    }
    out.extend_from_slice(end.as_bytes());
    changes.len()
}

/// The user's JSON with the time of the change, if there is one. The JSON is shared with snapshots, which must not
/// reveal the last-seen time.
fn stamped(json: &str, at: Option<WallTime>) -> (&str, String) {
    match (at, json.strip_suffix('}')) {
        (Some(at), Some(open)) => (open, format!(r#","at_ms":{}}}"#, at.0)),
        _ => (json, String::new()),
    }
}
