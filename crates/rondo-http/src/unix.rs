//! Parts of connections that differ between systems.

use hyper_util::client::legacy::connect::HttpConnector;
use std::time::Duration;

/// Ends connections whose peer does not acknowledge what was sent, if the system can (Linux's
/// `TCP_USER_TIMEOUT`). Elsewhere the probes of a silent peer find out.
pub(crate) fn bound_unacknowledged<R>(tcp: &mut HttpConnector<R>, within: Duration) {
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    tcp.set_tcp_user_timeout(Some(within));
    #[cfg(not(any(target_os = "android", target_os = "fuchsia", target_os = "linux")))]
    let _ = (tcp, within);
}
