use rondo_testkit::Dice;

/// Random choices: the same for the same seed, on every machine.
pub(crate) struct Random(Dice);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Dice::new(seed))
    }

    /// Returns other choices, for what continues besides.
    pub(crate) fn split(&mut self) -> Self {
        Self::new(self.0.next_u64())
    }

    /// Returns a number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.roll(end)
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(from.len()).ok().filter(|it| *it > 0)?;
        from.get(usize::try_from(self.below(count)).ok()?)
    }
}
