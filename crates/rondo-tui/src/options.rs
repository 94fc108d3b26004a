//! How the screen is to be.

/// What the mouse does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mouse {
    /// The wheel scrolls, and dragging selects.
    #[default]
    On,
    /// The wheel scrolls; selecting is the terminal's own with Shift.
    Wheel,
    /// Nothing is asked of the terminal, which sends arrows for the wheel: these scroll.
    Off,
}

/// Colours of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colours {
    /// None.
    None,
    /// The sixteen that the terminal's own theme has.
    #[default]
    Sixteen,
    /// Those of the sixteen that can be read on a light ground.
    SixteenOnLight,
    /// True colours on a dark ground.
    Dark,
    /// True colours on a light ground.
    Light,
}

/// What is printed to the terminal's own scrollback when the screen is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtExit {
    /// Everything that was not printed yet.
    #[default]
    All,
    /// The last answer.
    Last,
    /// Nothing.
    None,
}

/// How a person is called who looks at another window, when a turn ends or asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notify {
    /// Not at all.
    #[default]
    Off,
    /// By the terminal's title.
    Title,
    /// By its bell.
    Bell,
    /// By a note on the desktop, as most terminals take it (OSC 9).
    Osc9,
    /// The same, as rxvt, foot and those of GNOME take it (OSC 777).
    Osc777,
}

/// How the screen is to be.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What the mouse does.
    pub mouse: Mouse,
    /// Its colours.
    pub colours: Colours,
    /// Whether the terminal may answer questions.
    pub may_ask: bool,
    /// Whether the terminal is asked which ground it has, for colours that can be read on it where it answers.
    pub asks_ground: bool,
    /// Whether the terminal has true colours.
    pub has_true_colours: bool,
    /// Whether nothing moves by itself.
    pub is_still: bool,
    /// Whether what was said before in the session stands in the terminal's scrollback already.
    pub is_continued: bool,
    /// What is printed when it is left.
    pub at_exit: AtExit,
    /// How a person is called who looks elsewhere.
    pub notify: Notify,
    /// Whether the editing keys are those of vi.
    pub has_vi_keys: bool,
}
