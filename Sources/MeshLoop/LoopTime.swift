// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What the clock and the timers of a loop go by.
public enum LoopTime: Sendable {
    /// The machine's monotonic clock.
    case monotonic
    /// A clock of the loop's own, for tests of what has deadlines: it stands still while anything happens on the loop, and
    /// goes to the next timer at once when nothing else can. A deadline then costs no time, is met exactly, and is missed
    /// on no machine, however slow.
    ///
    /// Nothing happens when no job is queued, several polls in a row have brought nothing, and no ``EventLoop/blocking(isolation:_:)``,
    /// look-up of a host or child process is under way. What other threads do is not seen: all parties have to be on the
    /// one loop, and their tasks prefer it as their executor (``EventLoop/taskExecutor``). They may talk over Unix sockets
    /// and pipes, whose bytes can be read as soon as they are written; the kernel hands on those of TCP and of terminals
    /// on a thread of its own, in its own time.
    case virtual
}
