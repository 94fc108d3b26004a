//! Without keepers, no supervisor waits for a call.

use std::os::fd::OwnedFd;

pub(super) const DESCRIPTORS: usize = 3;
pub(super) const CALL_DESCRIPTORS: usize = 3;

pub(super) fn serve(_given: Vec<OwnedFd>, _keeper: u32) -> i32 {
    1
}
