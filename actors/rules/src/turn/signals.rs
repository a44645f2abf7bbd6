//! What the machine of turns is told, and what it says.

/// Who may speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// The agent thinks or speaks.
    Agent,
    /// The agent listens.
    User,
}

/// How words come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ears {
    /// Nobody tells them.
    None,
    /// They are waited for.
    Words,
    /// The agent hears the sound by itself: they may follow.
    Beside,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A voice was noticed; its sound follows, from before its beginning on.
    Began,
    /// The sound went on for so long: a voice, so loud, or none.
    Sound {
        ms: u32,
        voice_db: Option<f32>,
    },
    /// Nothing more of it will be heard.
    Cut,
    Floor(Floor),
    Ears(Ears),
    /// Words so far.
    Partial(String),
    /// The same, asked for once before the last time.
    Earlier(String),
    /// All words of what was heard when they were last asked for.
    Final(String),
    /// These words will not be known.
    Failed,
    /// A provider that detects turns: it seems to be over,
    EagerEnd(String),
    /// it is not,
    Resumed,
    /// it is.
    TurnEnd(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The words are wanted.
    Ask,
    /// The agent is to fall silent.
    Begin,
    /// And not to go on with what it was saying.
    Sure,
    /// It is to go on where it fell silent.
    GoOn,
    /// It seems to be over, with these words.
    Provisional(String),
    /// That was wrong.
    Void,
    Over(Outcome),
}

/// What a turn was.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// What was provisional.
    Stands,
    /// To be answered.
    Turn(Known),
    /// Said while the agent went on: it answers nothing.
    Aside(Known),
    /// Nobody needs to know.
    Noise,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// Empty: a noise in which there was no word.
    Words(String),
    /// It was speech; nobody knows which.
    Never,
    /// They may follow. So far these were told, if any.
    Later(String),
}
