//! What the document says beside what its format knows.

/// The scope that a key needs: what a bearer key may do has no place of its own there.
pub const SCOPE: &str = "x-required-scope";
/// What each value of an enumeration means, as Redoc reads it.
pub const MEANINGS: &str = "x-enumDescriptions";
