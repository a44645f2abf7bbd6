//! The wish to be left alone, heard by the phrases or by a model, and obeyed.
use super::{
    Caller, Conversation,
    judge::{Judge, No},
    speech_out::Over,
    transport::{CallTransport, keys_in},
};
use crate::{call::leg::Leg, deps::Deps};
use entities::{agent::Definition, law::DisclosureKind, session, values::Env};
use rules::{
    conversation::{
        claims,
        disclosure::{self, Asked, OPT_OUT_KEY},
        phrases,
    },
    session::command::Command,
};
use std::time::Duration;

/// What the other side of one call is listened to for.
#[derive(Clone, Debug)]
pub struct Wishes {
    language: String,
    /// Not to be called again: what an agent is listened to for unless it says otherwise, and in a live call whatever it says.
    calls: bool,
    /// The agent's own phrases.
    own: Vec<String>,
    key: Option<String>,
    /// It was told which word is enough.
    has_offer: bool,
    /// Who asks whether a machine speaks is answered by the service.
    is_truthful: bool,
}

impl Wishes {
    pub fn of(call: &session::Model, definition: &Definition) -> Self {
        let opt_out = &definition.opt_out;
        let legal = call.options.legal.as_ref();
        let has_offer = legal.is_some_and(|legal| legal.asks_for(DisclosureKind::OptOut));
        // The message for whom no agent takes names a key, too.
        let names_key = has_offer || call.options.safe_harbour.is_some();
        let calls = opt_out.enabled || names_key || call.env == Env::Live;
        let own_key = opt_out.key.as_deref().filter(|_| calls);
        let key = own_key.or(names_key.then_some(OPT_OUT_KEY));
        Wishes {
            language: definition.language.to_string(),
            calls,
            own: opt_out.phrases.iter().map(|phrase| phrase.to_string()).collect(),
            key: key.map(str::to_owned),
            has_offer,
            is_truthful: call.is_truthful(),
        }
    }

    /// The wish to be left alone, or else the wish not to be recorded, as the phrases hear it.
    pub(super) fn no_in(&self, text: &str) -> Option<No> {
        let Wishes { language, own, .. } = self;
        let is_stop = || self.has_offer && disclosure::is_stop(text, language);
        if self.calls && (phrases::is_opt_out(text, language, own) || is_stop()) {
            return Some(No::Calls);
        }
        phrases::objects_to_recording(text, language).then_some(No::Recording)
    }

    /// The key by which this call is opted out of.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// It was pressed.
    pub(super) fn opts_out_by(&self, keys: &str) -> bool {
        self.key() == Some(keys)
    }

    /// The wish not to be called again counts.
    pub(super) fn hear_calls(&self) -> bool {
        self.calls
    }

    /// What the service answers itself.
    pub(super) fn asked(&self, text: &str) -> Option<Asked> {
        if !self.is_truthful {
            return None;
        }
        claims::asked(text)
    }
}

/// Screens what was understood by the end of a talk and nobody in it had taken, after the agent's last words. Nobody waits for it: a no is
/// told to the session, at once where the phrases hear it, within 3 s where only the model does.
pub fn screen_last(deps: &Deps, leg: &Leg, agent: &str, said: &[String]) {
    let wishes = Wishes::of(&leg.call, &leg.agent.definition);
    let recording = leg.call.options.recording.is_some();
    let mut judge = Judge::of(deps, leg.session(), wishes.hear_calls(), recording);
    let found = said.iter().filter_map(|words| match keys_in(words) {
        Some(keys) => wishes.opts_out_by(keys).then_some(No::Calls),
        None => wishes.no_in(words),
    });
    // Who is not to be called again is not recorded either.
    let no = found.reduce(|one, other| if one == No::Calls { one } else { other });
    // Nobody is asked what is meant by a key.
    let words: Vec<&str> = said
        .iter()
        .map(String::as_str)
        .filter(|words| keys_in(words).is_none())
        .collect();
    if no.is_some() || !words.is_empty() {
        judge.leave_open(no, agent, &words.join(" "));
    }
    // Dropped, it screens what is open.
}

impl<L: CallTransport> Conversation<L> {
    /// Says goodbye to somebody who does not want this.
    pub(super) async fn heed(&mut self, no: No) -> Over {
        match no {
            No::Calls => self.opt_out().await,
            No::Recording => self.refuse_consent().await,
        }
    }

    async fn opt_out(&mut self) -> Over {
        self.tell_opt_out();
        let words = self.stock_phrases().opted_out;
        self.leave(words).await
    }

    fn tell_opt_out(&mut self) {
        let purge_after = match &self.caller {
            Caller::Live(deps) => self.now().plus(deps.limits.opt_out_purge_grace),
            Caller::Stubbed(_) => self.now().plus(Duration::from_secs(7 * 86_400)),
        };
        self.speech_out.tell(Command::OptOut { purge_after });
    }

    /// What a model has added is done as if the phrases had heard it.
    pub(super) async fn obey(&mut self, no: No) -> Over {
        self.speech_out.tell(no.note());
        self.heed(no).await
    }

    /// The session is told of a wish, where nothing more is said.
    pub(super) fn tell_no(&mut self, no: No) {
        match no {
            No::Calls => self.tell_opt_out(),
            No::Recording => self.speech_out.tell(Command::Consent(false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::{
        ids::{AgentId, SessionId, TenantId},
        session::{CallLegal, Disclose, SafeHarbour},
        values::{Country, E164, Moment},
    };
    use serde_json::json;
    use uuid::Uuid;

    fn wishes(env: Env, offers: bool, opt_out: serde_json::Value) -> Wishes {
        let legal = offers.then(|| CallLegal {
            disclose: Some(Disclose {
                kinds: vec![DisclosureKind::OptOut],
                repeat_minutes: None,
            }),
            ..CallLegal::default()
        });
        let options = session::Options {
            legal,
            ..session::Options::default()
        };
        of(env, options, opt_out)
    }

    fn of(env: Env, options: session::Options, opt_out: serde_json::Value) -> Wishes {
        let id = Uuid::from_u128;
        let owner = (TenantId(id(1)), env);
        let nobody = E164::parse("+15002000000", Country::US).unwrap();
        let now = Moment::from_millis(0);
        let mut call = session::Model::new(owner, SessionId(id(2)), (AgentId(id(3)), 1), nobody, now);
        call.options = options;
        let agent = json!({ "name": "Ann", "prompt": "x", "opt_out": opt_out });
        Wishes::of(&call, &serde_json::from_value(agent).unwrap())
    }

    /// An agent is shared by both environments: what it switches off is off in the sandbox only, and where nothing was offered.
    #[test]
    fn a_live_call_is_always_listened_to() {
        let off = || json!({ "enabled": false, "key": "5" });
        for (env, offers, opt_out, (calls, key)) in [
            (Env::Test, false, json!({}), (true, None)),
            (Env::Test, false, json!({ "key": "5" }), (true, Some("5"))),
            (Env::Test, false, off(), (false, None)),
            (Env::Test, true, off(), (true, Some("5"))),
            (Env::Test, true, json!({}), (true, Some("9"))),
            (Env::Live, false, json!({}), (true, None)),
            (Env::Live, false, off(), (true, Some("5"))),
            (Env::Live, true, json!({ "enabled": false }), (true, Some("9"))),
            (Env::Live, true, json!({ "key": "*" }), (true, Some("*"))),
        ] {
            let wishes = wishes(env, offers, opt_out.clone());
            assert_eq!(
                (wishes.hear_calls(), wishes.key()),
                (calls, key),
                "{env:?} {offers} {opt_out}"
            );
            let no = wishes.no_in("Please stop calling me.");
            assert_eq!(no, calls.then_some(No::Calls), "{env:?} {offers} {opt_out}");
            assert_eq!(
                wishes.no_in("Stop.").is_some(),
                offers,
                "the word counts where it was offered"
            );
        }
    }

    #[test]
    fn the_key_of_the_message_for_the_abandoned_counts() {
        for (own, expected) in [(None, "9"), (Some("5"), "5")] {
            let message = SafeHarbour { text: "Hello.".into() };
            let options = session::Options {
                safe_harbour: Some(message),
                ..session::Options::default()
            };
            let wishes = of(Env::Test, options, json!({ "enabled": false, "key": own }));
            assert_eq!((wishes.hear_calls(), wishes.key()), (true, Some(expected)));
        }
    }

    #[test]
    fn who_asks_is_answered_where_the_law_is_known_and_in_live_calls() {
        for (env, offers, answered) in [
            (Env::Test, false, false),
            (Env::Test, true, true),
            (Env::Live, false, true),
        ] {
            let asked = wishes(env, offers, json!({})).asked("Are you a robot?");
            assert_eq!(asked.is_some(), answered, "{env:?} {offers}");
        }
    }
}
