//! Params and what the typed layer reads in them.

use dsh_wire::json::{Json, JsonStr};
use dsh_wire::wire::Notification;

/// The typed layer reads the same from params that came in a line, of which the parts may be known by the way, from the
/// same text without that knowledge, and from one that is not as the official runtime writes it.
pub(crate) fn check(method: JsonStr<'_>, params: Json<'_>) {
    let spaced = params.get().replacen('{', "{ ", 1);
    let body = |json| Notification::decode(method, json).map(|notification| notification.body).ok();
    let read = body(params);
    assert_eq!(read, body(Json::new(params.get()).unwrap()), "{params:?}");
    // The params of an unknown method have no body but themselves.
    assert_eq!(read, body(Json::new(&spaced).unwrap()), "{params:?}");
}
