//! A disk under SQLite that forgets what was not synced when its process ends.
//!
//! SIGKILL leaves what a process wrote with the kernel, so that a database survives it whatever it forgot to sync. With
//! [`PowerLoss::install`], all databases of a process keep what they write in its memory until they sync it: killing the
//! process is then what the loss of power is to a machine. Of what was not synced, some sectors may reach the disk all the
//! same, in any order, as a kernel may write them back on its own.
//!
//! There are crates for layers like this: `sqlite-plugin` generates its bindings when it is built, which needs libclang,
//! and `sqlite-vfs` is not maintained and knows no write-ahead log. So this is one over SQLite's own: it passes on locks
//! and shared memory as they are.
//!
//! It does not model the names of files, which are there as soon as SQLite makes them.

mod vfs;
mod volatile;

use std::str::FromStr;

/// How a process loses power.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// Of a hundred sectors that are written, so many reach the disk before they are synced.
    pub strays: u64,
    /// Selects these sectors, together with the data that is written.
    pub seed: u64,
    /// The sync at which the process ends by itself; none has it end whenever it is killed.
    pub at: Option<Moment>,
}

/// A sync of a write-ahead log, which is a commit if a database waits for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Just before this one: what it is to sync is lost.
    Before(u64),
    /// Just after this one, before anyone knows of it.
    After(u64),
}

impl PowerLoss {
    /// Puts all databases that this process opens from now on on such a disk. Another process must not have one of them
    /// open meanwhile: it would not see what is not synced.
    ///
    /// # Panics
    /// When it was called before, or SQLite refuses it.
    pub fn install(self) {
        vfs::install(self);
    }

    /// Returns it as one word, for the arguments of a process that is to lose power.
    #[must_use]
    pub fn word(&self) -> String {
        let at = match self.at {
            None => "-".to_owned(),
            Some(Moment::Before(sync)) => format!("before:{sync}"),
            Some(Moment::After(sync)) => format!("after:{sync}"),
        };
        format!("{},{},{at}", self.strays, self.seed)
    }
}

impl FromStr for PowerLoss {
    type Err = String;

    /// Reads the word that [`PowerLoss::word`] returns.
    fn from_str(word: &str) -> Result<Self, String> {
        let malformed = || format!("`{word}` does not say how power is lost");
        let number = |text: &str| text.parse::<u64>().map_err(|_| malformed());
        let [strays, seed, at] = word.split(',').collect::<Vec<_>>()[..] else {
            return Err(malformed());
        };
        let at = match at.split_once(':') {
            None => None,
            Some(("before", sync)) => Some(Moment::Before(number(sync)?)),
            Some(("after", sync)) => Some(Moment::After(number(sync)?)),
            Some(_) => return Err(malformed()),
        };
        Ok(Self {
            strays: number(strays)?,
            seed: number(seed)?,
            at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_power_is_lost_goes_through_a_word() {
        for at in [None, Some(Moment::Before(7)), Some(Moment::After(1))] {
            let loss = PowerLoss {
                strays: 30,
                seed: 5,
                at,
            };
            assert_eq!(loss.word().parse(), Ok(loss));
        }
        for malformed in ["", "1,2", "1,2,between:3", "1,x,-", "1,2,-,4"] {
            assert!(malformed.parse::<PowerLoss>().is_err(), "{malformed}");
        }
    }
}
