//! Which session comes from which.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use crate::json::{Json, JsonStr};
use crate::wire::{Notification, NotificationBody};

/// Sessions that are remembered unless the caller says otherwise.
const DEFAULT_LIMIT: usize = 16_384;

/// The lineage of sessions, as `subagent.started` notifications tell it.
///
/// It is bounded: the oldest session is forgotten where there would be more than the limit, 16 384 in a
/// [`Client`](super::Client). What is about that session or comes from it passes no filter by
/// [`session_tree`](super::Filter::session_tree) of those above any more, and nobody is told.
///
/// ```
/// use dsh_wire::client::SessionTree;
/// use dsh_wire::json::JsonString;
///
/// let [root, child, grandchild] = ["root", "child", "grandchild"].map(JsonString::from);
/// let mut tree = SessionTree::new();
/// tree.record(root.as_json_str(), child.as_json_str());
/// tree.record(child.as_json_str(), grandchild.as_json_str());
/// assert!(tree.contains(root.as_json_str(), grandchild.as_json_str()));
/// assert!(!tree.contains(grandchild.as_json_str(), root.as_json_str()));
/// ```
#[derive(Debug, Clone)]
pub struct SessionTree {
    /// From each session to the one that started it; both as canonical JSON text. May hold cycles, if the runtime
    /// says so.
    parents: BTreeMap<Box<str>, Box<str>>,
    /// The keys of `parents`, oldest first; at most `limit`.
    order: VecDeque<Box<str>>,
    limit: usize,
}

impl SessionTree {
    /// An empty tree that remembers 16 384 sessions.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }

    /// An empty tree that forgets the oldest session when it would hold more than `limit`.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { parents: BTreeMap::new(), order: VecDeque::new(), limit }
    }

    /// Notes what a notification says of lineage.
    pub fn note(&mut self, notification: &Notification<'_>) {
        if let NotificationBody::SubagentStarted(started) = &notification.body {
            self.record(started.parent_session_id, started.child_session_id);
        }
    }

    /// Notes that one session has started another. A session that starts itself is not noted.
    pub fn record(&mut self, parent: JsonStr<'_>, child: JsonStr<'_>) {
        let (parent, child) = (canonical(parent), canonical(child));
        if parent == child || self.limit == 0 {
            return;
        }
        if let Some(known) = self.parents.get_mut(&*child) {
            *known = parent.into();
            return;
        }
        if self.order.len() >= self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.parents.remove(&oldest);
        }
        self.order.push_back((&*child).into());
        self.parents.insert(child.into(), parent.into());
    }

    /// Whether a session is `root` or comes from it.
    #[must_use]
    pub fn contains(&self, root: JsonStr<'_>, session: JsonStr<'_>) -> bool {
        if root == session {
            return true;
        }
        if self.parents.is_empty() {
            return false;
        }
        let (root, session) = (canonical(root), canonical(session));
        let mut at = &*session;
        // As many steps as there are edges: a cycle has been walked round by then.
        for _ in 0..self.parents.len() {
            match self.parents.get(at) {
                Some(parent) if **parent == *root => return true,
                Some(parent) => at = parent,
                None => return false,
            }
        }
        false
    }

    /// Whether a notification is about `root` or a session that comes from it. The start and the end of a sub-agent
    /// are about the session above it.
    #[must_use]
    pub fn concerns(&self, root: JsonStr<'_>, notification: &Notification<'_>) -> bool {
        notification.session_id().is_some_and(|session| self.contains(root, session))
            || notification.params.member("childSessionId").and_then(Json::as_str).is_some_and(|child| child == root)
    }

    /// How many sessions are remembered, roots not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }
}

impl Default for SessionTree {
    fn default() -> Self {
        Self::new()
    }
}

/// The one text among those that say the same.
fn canonical(id: JsonStr<'_>) -> Cow<'_, str> {
    match id.as_plain() {
        Some(_) => Cow::Borrowed(id.get()),
        None => Cow::Owned(id.to_buf().as_json_str().get().into()),
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::json::JsonString;

    fn record(tree: &mut SessionTree, parent: &str, child: &str) {
        tree.record(JsonString::from(parent).as_json_str(), JsonString::from(child).as_json_str());
    }

    fn contains(tree: &SessionTree, root: &str, session: &str) -> bool {
        tree.contains(JsonString::from(root).as_json_str(), JsonString::from(session).as_json_str())
    }

    #[test]
    fn cycles_are_harmless() {
        let mut tree = SessionTree::new();
        record(&mut tree, "a", "b");
        record(&mut tree, "b", "c");
        record(&mut tree, "c", "a");
        record(&mut tree, "d", "d");
        assert!(contains(&tree, "a", "c") && contains(&tree, "c", "b") && contains(&tree, "d", "d"));
        assert!(!contains(&tree, "x", "c"));
        assert_eq!(tree.len(), 3);
    }

    #[test]
    fn it_is_bounded_and_forgets_the_oldest() {
        let mut tree = SessionTree::with_limit(3);
        for n in 0..10 {
            record(&mut tree, "root", &format!("s{n}"));
        }
        assert_eq!((tree.len(), tree.order.len()), (3, 3));
        assert!(contains(&tree, "root", "s9") && !contains(&tree, "root", "s6"));
    }

    #[test]
    fn an_id_is_the_same_however_it_is_written() {
        let mut tree = SessionTree::new();
        let spelled = Json::new(r#""\u0061\ud83d""#).unwrap().as_str().unwrap();
        let other = Json::new(r#""a\uD83D""#).unwrap().as_str().unwrap();
        tree.record(spelled, JsonString::from("child").as_json_str());
        assert!(tree.contains(other, JsonString::from("child").as_json_str()));
    }
}
