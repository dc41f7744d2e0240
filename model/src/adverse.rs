//! Worlds in which more goes wrong than in every world.

use crate::fail_over::AfterFailOver;
use crate::world::World;

impl World {
    /// The first two executors are two places of one, whose starts are told apart (A2), see [`crate::boots`].
    pub fn restarts(mut self) -> World {
        self.setup.shape.extras.boots = true;
        self.name += ", the first two one executor that restarts";
        self
    }

    /// A second sweeper, with a memory of its own.
    pub fn two_sweepers(mut self) -> World {
        self.setup.shape.extras.second_sweeper = true;
        self.name += ", two sweepers";
        self
    }

    /// The database's clock may be set back.
    pub fn clock_back(mut self) -> World {
        self.faults.clock_back = true;
        self.name += ", clock set back";
        self
    }

    /// All executors may die at once, or each put its task back in good order, so many times over all.
    pub fn deploys(mut self, releases: u8) -> World {
        self.faults.deploy = true;
        self.releases = releases;
        self.setup.shape.extras.releases = true;
        self.name += &format!(", deploys ({releases} in order)");
        self
    }

    /// A write to the database may be delivered twice.
    pub fn writes_twice(mut self) -> World {
        self.setup.shape.extras.copies = true;
        self.name += ", writes delivered twice";
        self
    }

    /// The third party may be out of reach, so that a call is surely not sent.
    pub fn unreachable(mut self) -> World {
        self.faults.not_sent = true;
        self.name += ", third party out of reach";
        self
    }

    /// A call may be delivered twice.
    pub fn calls_twice(mut self) -> World {
        self.faults.calls_twice = true;
        self.name += ", calls delivered twice";
        self
    }

    /// The database may lose its last commit.
    pub fn fail_over(mut self, after: AfterFailOver) -> World {
        self.fail_over = Some(after);
        self.setup.shape.extras.past = true;
        self.name += &format!(", a lost commit ({})", after.name());
        self
    }
}
