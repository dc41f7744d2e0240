//! A trace in the formats of other programs.

mod perfetto;
mod shiviz;

pub use perfetto::perfetto;
pub use shiviz::shiviz;
