//! What follows from changes of the whitelist: whoever was taken out goes at once, whoever was put in is let in.

use std::sync::Arc;
use std::time::Duration;

use domain::Passkey;

use super::{Done, Vouching, within};
use crate::error::AccessError;
use crate::vouching::recheck::Part;
use crate::vouching::verdicts::Voucher;
use crate::whitelist::feed::{PasskeyChange, PasskeyFeed};

/// How long the whitelist may take to answer about many passkeys at once.
const RECHECK_TIMEOUT: Duration = Duration::from_secs(10);

impl Vouching {
    /// Looks whether anything changed, unless somebody is looking already.
    pub(super) fn read_feed(&mut self, now: Duration) {
        if now < self.feed_due {
            return;
        }
        let Some(mut feed) = self.feed.take() else { return };
        self.feed_begun = now;
        self.feed_due = now + self.settings.feed_every;
        self.work.spawn(async move {
            let news = feed.news().await;
            Done::News(feed, news)
        });
    }

    pub(super) fn take_news(&mut self, feed: PasskeyFeed, news: Result<Vec<PasskeyChange>, AccessError>) {
        self.feed = Some(feed);
        match news {
            Ok(changes) => {
                changes.into_iter().for_each(|change| self.hear(change));
                self.write_backs.know_news_until(self.feed_begun);
            }
            Err(error) => self.complain_of_whitelist(&error),
        }
    }

    fn hear(&mut self, change: PasskeyChange) {
        match change {
            PasskeyChange::Added(passkey) => {
                self.inquiries.outdate(&passkey);
                self.write_backs.hear_addition(&passkey);
                self.run_errand();
                if self.book.get(&passkey).is_some_and(|verdict| verdict.vouched.is_none()) {
                    self.book.forget(&passkey);
                }
            }
            PasskeyChange::Removed(passkey) => {
                self.whitelist.believe_missing();
                self.hear_removal(&passkey);
            }
            PasskeyChange::Replaced => {
                self.whitelist.believe_missing();
                self.inquiries.outdate_all();
                self.hear_replacement_of_written();
                self.recheck.begin(self.strangers.verdicts());
                self.go_on_rechecking();
            }
        }
    }

    fn hear_removal(&mut self, passkey: &Passkey) {
        self.inquiries.outdate(passkey);
        self.hear_removal_of_written(passkey);
        let verdict = self.book.forget(passkey);
        if let Some((user, _)) = verdict.and_then(|verdict| verdict.vouched) {
            self.shut_out(user);
        } else if let Some(holder) = self.gate.holder(passkey).filter(|holder| holder.vouched) {
            self.shut_out(holder.id);
        }
    }

    /// Compares remembered answers with a whitelist that was replaced.
    pub(super) fn go_on_rechecking(&mut self) {
        let Some(part) = self.recheck.next(self.strangers.verdicts()) else { return };
        let whitelist = Arc::clone(&self.whitelist);
        self.work.spawn(async move {
            let passkeys: Vec<Passkey> = part.iter().map(|(passkey, _)| *passkey).collect();
            let found = within(RECHECK_TIMEOUT, whitelist.check(&passkeys)).await;
            Done::Rechecked(part, found)
        });
    }

    pub(super) fn take_recheck(&mut self, part: Part, found: Result<Vec<bool>, AccessError>) {
        match found {
            // Tried again at the next look around.
            Err(error) => {
                self.complain_of_whitelist(&error);
                self.recheck.hear_failure(part);
            }
            Ok(found) => {
                if self.recheck.hear_answer() {
                    part.into_iter().zip(found).for_each(|(known, is_in)| self.compare(known, is_in));
                }
                self.go_on_rechecking();
            }
        }
    }

    fn compare(&mut self, (passkey, known): (Passkey, crate::vouching::verdicts::Verdict), is_in: bool) {
        let is_by_site_key = known.vouched.is_some_and(|(_, by)| by == Voucher::SiteKey);
        if known.vouched.is_some() == is_in || is_by_site_key || self.book.get(&passkey) != Some(known) {
            return;
        }
        match known.vouched {
            // The next announce asks the endpoint, whose no turns the user's peers out.
            Some(_) if self.endpoint.is_some() => self.book.expire(&passkey, self.now()),
            // Nobody is left who could vouch.
            Some((user, _)) => {
                self.book.forget(&passkey);
                self.shut_out(user);
            }
            None => drop(self.book.forget(&passkey)),
        }
    }
}
