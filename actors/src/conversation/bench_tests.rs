//! What the benches of a talk have in common.
use super::SessionLink;
use entities::{
    ids::{AgentId, RecordingId, SessionId, TenantId},
    session::{AnsweredBy, Model, Options},
    values::{Country, E164, Env, Moment},
};
use rules::session::{
    command::Command,
    machine::{self, Session},
};
use uuid::Uuid;

/// A session that somebody has just answered and that nobody stores.
pub fn answered(options: Options) -> SessionLink {
    let now = Moment::from_millis(1_000_000);
    let id = Uuid::from_u128;
    let owner = (TenantId(id(1)), Env::Test);
    let nobody = E164::parse("+15002000000", Country::US).unwrap();
    let row = Model {
        options,
        ..Model::new(owner, SessionId(id(2)), (AgentId(id(3)), 1), nobody, now)
    };
    let (session, _) = Session::received(row, "https://callboard.test".into(), now);
    let answer = Command::Answer {
        by: AnsweredBy::Human,
        recording_id: RecordingId(id(4)),
    };
    let (session, _) = machine::transition(session, answer, now).unwrap();
    SessionLink::Dry(Box::new(session), now)
}
