//! Clones of voices: uploaded samples are examined, a provider makes the voice, and it is erased there when nobody wants it.
pub mod machine;
