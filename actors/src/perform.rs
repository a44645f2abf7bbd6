//! What effects do: their work is begun and their hints are told, after the commit that decided them.
use crate::{
    call::leg::Control,
    campaign, credits,
    deps::Deps,
    evaluate, inbound, outgoing,
    recording::{spooling, studio},
    room::lifecycle,
    router::LaneHint,
    voice_clone,
};
use entities::{
    email_message::Model as Email,
    ids::{SessionId, TenantScoped},
    session::WhyAbandoned,
    sms_message::Model as Sms,
};
use rules::{
    campaign::machine::Command as CampaignCommand,
    effect::{CallCount, DispatchHint, Effect, Fact, Hint, Placed, Work},
    recording::machine::Command as RecordingCommand,
    room::machine::Command as RoomCommand,
    session::machine::code,
};

pub fn perform(deps: &Deps, effects: Vec<Effect>) {
    for effect in effects {
        match effect {
            Effect::Fact(fact) => measure(&fact),
            Effect::Work(work) => begin(deps, work),
            Effect::Hint(hint) => tell(deps, hint),
        }
    }
}

/// What the metrics count once it stands.
fn measure(fact: &Fact) {
    if let Fact::CountCall(CallCount {
        placed: Some(Placed {
            abandoned: Some(why), ..
        }),
        ..
    }) = fact
    {
        let why = match why {
            WhyAbandoned::LateSound => "late_sound",
            WhyAbandoned::Silence => "silence",
            WhyAbandoned::NoBrain => "no_brain",
            WhyAbandoned::NoAgent => "no_agent",
            WhyAbandoned::Detector => "detector",
        };
        metrics::counter!("callboard_calls_abandoned_total", "why" => why).increment(1);
    }
}

fn begin(deps: &Deps, work: Work) {
    match work {
        Work::HangUp { session } => {
            // First out of hand: what is not placed yet never is.
            deps.calls.remove(session.id);
            if let Some(carrier) = deps.carriers.of(session.env) {
                carrier.hang_up(session.id);
            }
        }
        Work::TellSession(session, command) => deps.router.sessions().tell(session, command),
        Work::RoomEnded { room, session } => {
            let reason = session.end_reason.map_or("failed", code);
            lifecycle::close(deps, session.id, reason);
            deps.router.rooms().tell(room, RoomCommand::Follow(session));
        }
        Work::Transfer { session, to } => control(deps, session, Control::Transfer(to)),
        Work::TransferEnded { session } => control(deps, session, Control::TakeBack),
        Work::ExtendHold { call, started_at } => credits::extend(deps, call, started_at),
        Work::SendSms(message) => outgoing::send::<Sms>(deps, message),
        Work::SendEmail(message) => outgoing::send::<Email>(deps, message),
        Work::Evaluate(job) => evaluate::run(deps, job),
        Work::BeginRecording(call) => spooling::begin(deps, &call),
        Work::EraseSpool(session) => spooling::erase(deps, session),
        Work::KeepSounds { recording, sounds } => {
            deps.studio.keep(recording.id, sounds);
            deps.router.recordings().tell(recording, RecordingCommand::Tick);
        }
        Work::StoreSound(recording) => studio::store(deps, recording),
        Work::EraseSound(recording) => studio::erase(deps, recording),
        Work::TrainVoice(voice) => voice_clone::train(deps, voice),
        Work::EraseVoice(voice) => voice_clone::erase(deps, voice),
        Work::PutAwayContacts { campaign, reason } => campaign::actor::put_away(deps, campaign, reason),
        Work::ReviewContacts(campaign) => {
            deps.calls.forget_contacts_of(campaign.id);
            campaign::review::begin(deps, campaign.tenant_id);
        }
    }
}

fn tell(deps: &Deps, hint: Hint) {
    let router = &deps.router;
    match hint {
        Hint::CampaignsChanged(tenant) => router.dispatcher(tenant, DispatchHint::CampaignsChanged),
        Hint::ContactsChanged(campaign) => {
            router.campaigns().tell(campaign, CampaignCommand::Reconsider);
            router.dispatcher(campaign.tenant_id, DispatchHint::CampaignsChanged);
        }
        Hint::ContactWaits(contact) => campaign::actor::wake_for(deps.clone(), contact),
        Hint::SessionQueued(tenant) => router.dispatcher(tenant, DispatchHint::SessionQueued),
        Hint::SlotFreed { tenant_id, session_id } => router.dispatcher(tenant_id, DispatchHint::SlotFreed(session_id)),
        Hint::MessageEnded(campaign) => router.dispatcher(campaign.tenant_id, DispatchHint::MessageEnded(campaign.id)),
        Hint::TrunkCongested { tenant_id, route } => router.dispatcher(tenant_id, DispatchHint::TrunkCongested(route)),
        Hint::NoRoom(tenant) => router.dispatcher(tenant, DispatchHint::NoRoom),
        Hint::Overheard {
            session_id,
            place,
            turn,
        }
        | Hint::Understood {
            session_id,
            place,
            turn,
        } => deps.listeners.tell(session_id, place, &turn),
        Hint::OverheardEnd(session_id) => {
            deps.listeners.end(session_id);
            deps.latencies.end(session_id);
        }
        Hint::InboundCounted(number) => inbound::watch(deps, number),
        Hint::CheckDrained(campaign) => campaign::actor::check_drained(deps.clone(), campaign),
        Hint::EndpointChanged(endpoint) => router.lane(endpoint, LaneHint::Changed),
        Hint::MailQueued => router.mailer(),
    }
}

/// Tells the carrier what to do with a live call; one that is gone needs nothing more.
fn control(deps: &Deps, session: TenantScoped<SessionId>, control: Control) {
    deps.carriers.control(deps, session, control);
}
