//! Who gets which notifications, and what happens when they are not taken.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use core::fmt;

use super::SessionTree;
use super::{guard, read};
use crate::json::JsonString;
use crate::wire::{Notification, NotificationBody, NotificationBuf};

/// A question about one notification.
pub(super) type Predicate = Box<dyn FnMut(&Notification<'_>) -> bool + Send>;

/// What a queued notification costs beside its text.
const OVERHEAD: usize = 64;

/// Which notifications a subscription gets. Each condition narrows it.
///
/// ```
/// use dsh_wire::client::Filter;
///
/// let _every_event_below_s1 = Filter::all().method("session.event").session_tree("s1");
/// let _errors = Filter::all().matching(|n| n.event().is_some_and(|event| event.kind == "assistant/attempt"));
/// ```
#[derive(Default)]
pub struct Filter {
    method: Option<JsonString>,
    session: Option<JsonString>,
    /// Whether what comes from `session` counts as well.
    tree: bool,
    predicate: Option<Predicate>,
}

impl Filter {
    /// Everything.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Only this method.
    #[must_use]
    pub fn method(mut self, method: impl Into<JsonString>) -> Self {
        self.method = Some(method.into());
        self
    }

    /// Only what is about this session.
    #[must_use]
    pub fn session(mut self, session: impl Into<JsonString>) -> Self {
        (self.session, self.tree) = (Some(session.into()), false);
        self
    }

    /// Only what is about this session or one that comes from it.
    #[must_use]
    pub fn session_tree(mut self, root: impl Into<JsonString>) -> Self {
        (self.session, self.tree) = (Some(root.into()), true);
        self
    }

    /// Only what the predicate says yes to. With std, a panic in it ends this subscription and nothing else.
    #[must_use]
    pub fn matching(mut self, predicate: impl FnMut(&Notification<'_>) -> bool + Send + 'static) -> Self {
        self.predicate = Some(Box::new(predicate));
        self
    }

    /// `None` where the predicate panics.
    fn accepts(&mut self, notification: &Notification<'_>, tree: &SessionTree) -> Option<bool> {
        let session = |wanted: &JsonString| match self.tree {
            true => tree.concerns(wanted.as_json_str(), notification),
            false => notification.session_id().is_some_and(|session| session == wanted.as_json_str()),
        };
        if self.method.as_ref().is_some_and(|method| notification.method != method.as_json_str())
            || !self.session.as_ref().is_none_or(session)
        {
            return Some(false);
        }
        self.predicate.as_mut().map_or(Some(true), |predicate| guard::ask(predicate, notification))
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter")
            .field("method", &self.method)
            .field("session", &self.session)
            .field("tree", &self.tree)
            .field("predicate", &self.predicate.is_some())
            .finish()
    }
}

/// What happens when notifications come faster than they are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Nothing is lost: the runtime is held up instead, by not reading what it sends. While a call waits, or output
    /// does, reading goes on all the same, up to the client's `max_backlog`.
    Lossless,
    /// The oldest make room for new ones, and [`Delivery::Lagged`] tells how many there were. Status changes
    /// (`session.status`, `session.finished`) always stay, and do not count.
    Bounded {
        /// How many may wait.
        items: usize,
        /// How much memory, about, they may take.
        bytes: usize,
    },
}

impl Policy {
    /// [`Policy::Bounded`] by number, and by 16 MiB.
    #[must_use]
    pub fn bounded(items: usize) -> Self {
        Self::Bounded { items, bytes: 16 << 20 }
    }
}

/// Names one subscription of a [`Client`](super::Client). To another client it is one that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId {
    number: u64,
    /// What its client's connection is known by.
    connection: u64,
}

impl SubscriptionId {
    #[cfg(feature = "stdio")]
    pub(super) fn connection(self) -> u64 {
        self.connection
    }
}

/// What a subscription gives out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// A notification.
    Notification(NotificationBuf),
    /// So many notifications were dropped to make room; those that follow are younger.
    Lagged(u64),
}

impl Delivery {
    /// The notification, where it is one: as a view, and as of an unknown method where its params are not as its
    /// method's must be.
    #[must_use]
    pub fn notification(&self) -> Option<Notification<'_>> {
        match self {
            Self::Notification(buf) => Some(read(buf.method.as_json_str(), buf.params.as_json())),
            Self::Lagged(_) => None,
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Notification(notification) => write!(f, "{} {:?}", notification.method, notification.params),
            Self::Lagged(n) => write!(f, "{n} notifications were dropped"),
        }
    }
}

/// All subscriptions of one client.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// What the connection is known by.
    connection: u64,
    live: BTreeMap<SubscriptionId, Subscription>,
    next: u64,
    /// The most bytes that one of them ever held, of those that have ended too.
    most_held: usize,
}

/// One subscription: a filter and a queue.
#[derive(Debug)]
struct Subscription {
    name: String,
    filter: Filter,
    policy: Policy,
    /// Both ascending by number, and no number is in both; `kept` are those that may not be dropped.
    queue: VecDeque<(u64, NotificationBuf)>,
    kept: VecDeque<(u64, NotificationBuf)>,
    /// Number of the next notification.
    next: u64,
    /// Of `queue`, with the overhead.
    bytes: usize,
    /// Of `kept`, with the overhead.
    kept_bytes: usize,
    /// Dropped and not yet told.
    lagged: u64,
    /// The most that `queue` and `kept` ever held.
    high_water: usize,
    /// The predicate has panicked; nothing more comes in.
    failed: bool,
}

impl Subscriptions {
    pub(super) fn new(connection: u64) -> Self {
        Self { connection, ..Self::default() }
    }

    pub(super) fn insert(&mut self, name: String, filter: Filter, policy: Policy) -> SubscriptionId {
        let id = SubscriptionId { number: self.next, connection: self.connection };
        self.next += 1;
        self.live.insert(
            id,
            Subscription {
                name,
                filter,
                policy,
                queue: VecDeque::new(),
                kept: VecDeque::new(),
                next: 0,
                bytes: 0,
                kept_bytes: 0,
                lagged: 0,
                high_water: 0,
                failed: false,
            },
        );
        id
    }

    pub(super) fn remove(&mut self, id: SubscriptionId) -> bool {
        self.live.remove(&id).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.live.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    pub(super) fn offer(&mut self, notification: &Notification<'_>, tree: &SessionTree) {
        for subscription in self.live.values_mut().filter(|subscription| !subscription.failed) {
            match subscription.filter.accepts(notification, tree) {
                Some(true) => {
                    subscription.push(notification);
                    self.most_held = self.most_held.max(subscription.bytes + subscription.kept_bytes);
                }
                Some(false) => {}
                None => subscription.failed = true,
            }
        }
    }

    pub(super) fn pop(&mut self, id: SubscriptionId) -> Option<Delivery> {
        self.live.get_mut(&id)?.pop()
    }

    pub(super) fn has_delivery(&self, id: SubscriptionId) -> bool {
        self.live.get(&id).is_some_and(|live| live.lagged > 0 || !live.queue.is_empty() || !live.kept.is_empty())
    }

    /// Whether nothing more will come in, though the connection lives.
    pub(super) fn has_failed(&self, id: SubscriptionId) -> bool {
        self.live.get(&id).is_none_or(|subscription| subscription.failed)
    }

    pub(super) fn most_held(&self) -> usize {
        self.most_held
    }

    pub(super) fn high_water(&self, id: SubscriptionId) -> Option<usize> {
        self.live.get(&id).map(|subscription| subscription.high_water)
    }

    /// The subscription that holds most of what it may not drop, if that is more than `limit` bytes.
    pub(super) fn fullest_over(&self, limit: usize) -> Option<(&str, usize)> {
        let fullest = self.live.values().max_by_key(|subscription| subscription.held())?;
        (fullest.held() > limit).then_some((&*fullest.name, fullest.held()))
    }
}

impl Subscription {
    /// Bytes that may not be dropped.
    fn held(&self) -> usize {
        match self.policy {
            Policy::Lossless => self.bytes + self.kept_bytes,
            Policy::Bounded { .. } => self.kept_bytes,
        }
    }

    fn push(&mut self, notification: &Notification<'_>) {
        let item = (self.next, notification.to_buf());
        self.next += 1;
        let size = size(&item.1);
        let must_stay =
            matches!(notification.body, NotificationBody::SessionStatus(_) | NotificationBody::SessionFinished(_));
        if must_stay {
            self.kept.push_back(item);
            self.kept_bytes += size;
        } else {
            self.queue.push_back(item);
            self.bytes += size;
        }
        if let Policy::Bounded { items, bytes } = self.policy {
            while self.queue.len() > items || self.bytes > bytes {
                let Some((_, dropped)) = self.queue.pop_front() else { break };
                self.bytes -= self::size(&dropped);
                self.lagged += 1;
            }
        }
        self.high_water = self.high_water.max(self.queue.len() + self.kept.len());
    }

    fn pop(&mut self) -> Option<Delivery> {
        if self.lagged > 0 {
            return Some(Delivery::Lagged(core::mem::take(&mut self.lagged)));
        }
        let kept_first = match (self.kept.front(), self.queue.front()) {
            (Some((kept, _)), Some((queued, _))) => kept < queued,
            (kept, _) => kept.is_some(),
        };
        let (from, bytes) =
            if kept_first { (&mut self.kept, &mut self.kept_bytes) } else { (&mut self.queue, &mut self.bytes) };
        let (_, notification) = from.pop_front()?;
        *bytes -= size(&notification);
        Some(Delivery::Notification(notification))
    }
}

/// What a queued notification counts for.
pub(super) fn size(notification: &NotificationBuf) -> usize {
    notification.method.as_json_str().get().len() + notification.params.as_json().get().len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;
    use crate::json::Json;

    fn offer(subscriptions: &mut Subscriptions, method: &str, params: &str) {
        let method = JsonString::from(method);
        let notification = read(method.as_json_str(), Json::new(params).unwrap());
        subscriptions.offer(&notification, &SessionTree::new());
    }

    fn drain(subscriptions: &mut Subscriptions, id: SubscriptionId) -> Vec<String> {
        core::iter::from_fn(|| subscriptions.pop(id))
            .map(|delivery| match delivery {
                Delivery::Notification(buf) => {
                    buf.params.as_json().member("n").map_or_else(|| "status".into(), |n| n.to_string())
                }
                Delivery::Lagged(n) => format!("lagged {n}"),
            })
            .collect()
    }

    #[test]
    fn a_bounded_queue_keeps_the_youngest_and_every_status() {
        let mut subscriptions = Subscriptions::default();
        let id = subscriptions.insert("s".into(), Filter::all(), Policy::bounded(2));
        for n in 0..5 {
            offer(&mut subscriptions, "tick", &format!(r#"{{"n":{n}}}"#));
            if n % 2 == 0 {
                offer(&mut subscriptions, "session.status", r#"{"sessionId":"s","status":"idle"}"#);
            }
        }
        assert_eq!(drain(&mut subscriptions, id), ["lagged 3", "status", "status", "3", "4", "status"]);
        assert_eq!(subscriptions.high_water(id), Some(5));
        assert!(subscriptions.live[&id].held() == 0);
    }

    #[test]
    fn a_bounded_queue_is_bounded_in_bytes_too() {
        let mut subscriptions = Subscriptions::default();
        let policy = Policy::Bounded { items: 1000, bytes: 1000 };
        let id = subscriptions.insert("s".into(), Filter::all(), policy);
        for n in 0..100 {
            offer(&mut subscriptions, "tick", &format!(r#"{{"n":{n},"x":"{}"}}"#, "x".repeat(100)));
        }
        offer(&mut subscriptions, "tick", &format!(r#"{{"n":100,"x":"{}"}}"#, "x".repeat(2000)));
        assert_eq!(drain(&mut subscriptions, id), ["lagged 101"], "one that is larger than the limit is dropped too");
    }

    #[test]
    fn a_lossless_queue_is_named_when_it_is_over() {
        let mut subscriptions = Subscriptions::default();
        let id = subscriptions.insert("slow".into(), Filter::all().method("tick"), Policy::Lossless);
        offer(&mut subscriptions, "tock", "{}");
        for n in 0..100 {
            offer(&mut subscriptions, "tick", &format!(r#"{{"n":{n}}}"#));
        }
        assert_eq!(subscriptions.fullest_over(5000).map(|(name, _)| name), Some("slow"));
        assert_eq!(subscriptions.fullest_over(50_000), None);
        assert_eq!(drain(&mut subscriptions, id).len(), 100);
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_panic_in_a_predicate_harms_its_own_subscription_only() {
        let mut subscriptions = Subscriptions::default();
        let well = subscriptions.insert("well".into(), Filter::all(), Policy::Lossless);
        let ill = subscriptions.insert(
            "ill".into(),
            Filter::all().matching(|n| n.params.member("n").unwrap().as_u64().unwrap() < 2 || panic!("ill")),
            Policy::Lossless,
        );
        (0..4).for_each(|n| offer(&mut subscriptions, "tick", &format!(r#"{{"n":{n}}}"#)));
        assert_eq!(drain(&mut subscriptions, well).len(), 4);
        assert_eq!(drain(&mut subscriptions, ill), ["0", "1"]);
        assert!(subscriptions.has_failed(ill) && !subscriptions.has_failed(well));
    }
}
