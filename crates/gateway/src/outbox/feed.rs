//! The part of an outbox that holds statuses: the snapshot, and what changed since.

use domain::UserId;
use hashbrown::HashMap;
use wire::websocket::write_text_head;

use super::FeedUser;

/// One message brings statuses up to about this; the rest follows in further messages. SDKs take a megabyte at least.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// What an entry takes up besides its JSON.
const ENTRY_BYTES: usize = 48;

/// What waits of a feed.
#[derive(Default)]
pub(super) struct Feed {
    has_begun: bool,
    /// Whether the first message of the snapshot is still to be written.
    is_first: bool,
    /// What is left of the snapshot, last first.
    snapshot: Vec<FeedUser>,
    changes: Changes,
    is_urgent: bool,
    bytes: usize,
}

/// Changes that wait. Mostly there is none or one, for which no table is made.
#[derive(Default)]
enum Changes {
    #[default]
    None,
    One(UserId, Change),
    Many(Box<HashMap<UserId, Change, foldhash::fast::RandomState>>),
}

/// What changed about a person.
enum Change {
    Shown(FeedUser),
    Removed,
}

impl Change {
    fn shown(&self) -> Option<&FeedUser> {
        match self {
            Change::Shown(user) => Some(user),
            Change::Removed => None,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Change::Shown(user) => user.json.len() + ENTRY_BYTES,
            Change::Removed => ENTRY_BYTES,
        }
    }
}

impl Feed {
    /// Begins with a snapshot: of what waits, only what is newer stays.
    pub(super) fn begin(&mut self, mut users: Vec<FeedUser>) {
        for user in &users {
            let is_old = match self.changes.get(user.id) {
                // Who was hidden meanwhile is hidden, whatever the snapshot says; and of the same version another part
                // may be shown.
                Some(Change::Shown(waiting)) => waiting.version != 0 && waiting.version < user.version,
                Some(Change::Removed) | None => false,
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

    /// What waits to be written, as bytes; the snapshot does not count.
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

    /// Keeps a change; says whether nothing of this person waited.
    pub(super) fn change(&mut self, user: FeedUser, urgent: bool) -> bool {
        self.is_urgent |= urgent;
        match self.changes.get(user.id) {
            Some(Change::Shown(waiting)) if user.version != 0 && waiting.version > user.version => false,
            _ => self.put(user.id, Change::Shown(user)),
        }
    }

    pub(super) fn remove(&mut self, user: UserId) {
        self.is_urgent = true;
        self.put(user, Change::Removed);
    }

    /// A person is shown again whose removal may still wait.
    pub(super) fn show_again(&mut self, user: FeedUser) {
        if matches!(self.changes.get(user.id), Some(Change::Removed)) {
            self.put(user.id, Change::Shown(user));
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

    /// Adds one message: of the snapshot, or else of the changes. Gives how many people are in it.
    pub(super) fn write(&mut self, to: UserId, out: &mut Vec<u8>) -> usize {
        if self.has_snapshot() {
            let kind = if std::mem::take(&mut self.is_first) { "snapshot" } else { "changes" };
            let some = self.some_of_snapshot();
            // Parts are marked, so that a client can wait for the last one before it believes that somebody is gone.
            let more = !self.snapshot.is_empty();
            return write_message(to, Head { kind, more }, &some, out);
        }
        let some = self.changes.take_some();
        self.bytes -= some.iter().map(|(_, change)| change.bytes()).sum::<usize>();
        // What is left of a long list goes on being as urgent as it was.
        self.is_urgent &= !matches!(self.changes, Changes::None);
        write_message(to, Head { kind: "changes", more: false }, &some, out)
    }

    fn some_of_snapshot(&mut self) -> Vec<(UserId, Change)> {
        let (mut some, mut bytes) = (Vec::new(), 0);
        while bytes < MESSAGE_BYTES_MAX
            && let Some(user) = self.snapshot.pop()
        {
            bytes += user.json.len();
            some.push((user.id, Change::Shown(user)));
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

    /// Puts one in; gives what it replaces.
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

/// What a message is.
struct Head {
    kind: &'static str,
    /// The snapshot goes on in the next message.
    more: bool,
}

/// Adds one message about these people, with its WebSocket head.
fn write_message(
    to: UserId,
    Head { kind, more }: Head,
    people: &[(UserId, Change)],
    out: &mut Vec<u8>,
) -> usize {
    let beginning =
        format!(r#"{{"push":{{"channel":"feed:#{to}","pub":{{"data":{{"type":"{kind}","users":["#);
    let shown = || people.iter().filter_map(|(_, change)| change.shown());
    let removed = people.iter().filter(|(_, change)| change.shown().is_none());
    let removed: Vec<String> = removed.map(|(user, _)| format!("\"{user}\"")).collect();
    let removed = match removed.is_empty() {
        true => String::new(),
        false => format!(r#","removed":[{}]"#, removed.join(",")),
    };
    let more = if more { r#","more":true"# } else { "" };
    let end = format!("]{removed}{more}}}}}}}}}");
    let commas = shown().count().saturating_sub(1);
    let length = beginning.len() + shown().map(|user| user.json.len()).sum::<usize>() + commas + end.len();
    out.reserve(length + 10);
    write_text_head(out, length);
    out.extend_from_slice(beginning.as_bytes());
    for (place, user) in shown().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(user.json.as_bytes());
    }
    out.extend_from_slice(end.as_bytes());
    people.len()
}
