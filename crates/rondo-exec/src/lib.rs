//! Commands on a PTY under a supervisor, process trees and command analysis.
