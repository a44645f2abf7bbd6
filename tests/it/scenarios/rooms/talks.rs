//! Somebody joins and talks: a real WebRTC client over the loopback, in real time.
use super::*;
use crate::{
    on_both,
    world::{
        minutes, seconds,
        transcription_server::{Answer as Heard, TranscriptionServer},
    },
};
use actors::shell::Stored;
use rules::session::machine::Session;
use std::time::Instant;

fn captions(view: &media::webrtc::peer::View) -> usize {
    view.notes.iter().filter(|note| note["type"] == "caption").count()
}

on_both! {
    async fn a_person_joins_talks_and_hangs_up(world: &mut World) {
        let tenant = world.tenant().await;
        let more = json!({ "first_message": "Hello, this is Ann.", "recording": { "enabled": true }, "brain": { "mode": "scripted", "replies": [{ "say": "I see." }] } });
        let agent = the_call::agent(&tenant, more).await;
        let room = create(&tenant, &agent, json!({ "client_reference_id": "order 7", "participant": { "first_name": "Bo" } })).await;
        let link = Link::of(world, &tenant, &room);
        link.view().await;
        let (peer, participant) = link.join(None).await;
        let seen = peer.until("the agent says hello", |view| captions(view) >= 1).await;
        assert_eq!(seen.notes[0], json!({ "type": "joined" }));
        assert_eq!((&seen.notes[1]["role"], &seen.notes[1]["text"]), (&json!("agent"), &json!("Hello, this is Ann.")));
        let joined = get(&tenant, &room).await;
        assert_eq!((&joined["status"], &joined["participant"]["id"]), (&json!("joined"), &json!(participant)));
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["by_source"], json!({ "campaign": 0, "api": 0, "inbound": 0, "room": 1 }));
        peer.until("the agent is heard", |view| view.packets > 25 && view.energy > 0.01).await;
        // Somebody speaks, for a second and a half, and is silent.
        peer.say(speech());
        peer.until("the agent answers what was said", |view| {
            view.notes.iter().any(|note| note["role"] == "user") && view.notes.iter().any(|note| note["text"] == "I see.")
        }).await;
        let session_id = room["session_id"].as_str().unwrap();
        let said = tenant.api.post(&format!("/v1/sessions/{session_id}/say"), json!({ "text": "One more thing." })).await;
        assert_eq!(said.status, 202, "{}", said.body);
        peer.until("the agent says what the API wants", |view| view.notes.iter().any(|note| note["text"] == "One more thing.")).await;
        peer.press("5");
        world.advance(seconds(20)).await;
        assert_eq!(link.leave(&participant).await.status, 204);
        peer.until("the page is told", |view| view.notes.last().is_some_and(|note| *note == json!({ "type": "ended", "reason": "completed" }))).await;
        peer.closed().await;
        world.settle().await;
        let over = get(&tenant, &room).await;
        assert_eq!((&over["status"], &over["duration_seconds"]), (&json!("completed"), &json!(20)));
        let call = session(&tenant, &room).await;
        assert_eq!((&call["status"], &call["end_reason"], &call["ended_by"], &call["answered_by"]), (&json!("completed"), &json!("completed"), &json!("caller"), &json!("human")));
        assert_eq!(story(&tenant).await, ["session.created", "room.created", "room.landing_viewed", "room.joined", "session.started", "session.ended", "room.completed", "session.recording_completed"]);
        let told = &the_call::told(&tenant, "session.ended").await[0];
        for field in ["from_number", "to_number", "phone_number", "campaign_id", "contact_id"] {
            assert_eq!(told[field], Value::Null, "{field}");
        }
        assert_eq!((&told["client_reference_id"], &told["first_name"]), (&json!("order 7"), &json!("Bo")));
        assert_eq!(the_call::told(&tenant, "room.joined").await[0]["participant_id"], json!(participant));
        assert_eq!(the_call::told(&tenant, "room.completed").await[0]["duration_seconds"], 20);
        assert_eq!(link.page().await.status, 404);
        let wall = runtime::clock::Clock::wall();
        // Its task ends after the page has been told.
        while world.deps().carriers.rooms.media.connections() > 0 {
            let _busy = wall.sleep(Duration::from_millis(5)).await;
        }
        both_channels_carry_sound(&tenant, &call).await;
    }

    /// As long as the talk, on both sides, and everything in its place; a page that is reloaded is silent meanwhile.
    async fn a_recording_is_what_was_on_the_line(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = recorded_room(world, &tenant).await;
        let before = Instant::now();
        let (peer, participant) = link.join(None).await;
        peer.until("the agent says hello", |view| captions(view) >= 1).await;
        // It is recorded since some moment between these two.
        let line = Line { before, seen: Instant::now() };
        peer.until("the agent is heard", |view| view.packets > 25 && view.energy > 0.01).await;
        let says = Instant::now();
        peer.say(speech());
        peer.until("what was said is heard", |view| users(view) == 1).await;
        let heard = Instant::now();
        peer.close();
        until_lost(world, &tenant, &room).await;
        let lost = Instant::now();
        // The network's time is the machine's: more than is taken for lateness.
        let _busy = runtime::clock::Clock::wall().sleep(Duration::from_millis(1_500)).await;
        let comes_back = Instant::now();
        let (again, _) = link.join(Some(&participant)).await;
        until_found(world, &tenant, &room).await;
        let says_more = Instant::now();
        again.say(speech());
        again.until("it is heard again", |view| users(view) == 2).await;
        let leaves = Instant::now();
        assert_eq!(link.leave(&participant).await.status, 204);
        again.closed().await;
        let gone = Instant::now();
        world.settle().await;

        let call = session(&tenant, &room).await;
        let [agent, user] = recorded(&tenant, &call).await;
        let least = leaves - line.seen;
        let most = gone - line.before;
        let lasted = Duration::from_secs_f64(user.len() as f64 / 16_000.0);
        let tolerance = Duration::from_millis(100);
        assert!(lasted + tolerance >= least && lasted <= most + tolerance, "{lasted:?} is not in {least:?}..{most:?}");
        let first = line.loud(&user, says, heard);
        assert!(first > 2_000, "where it was said: {first}");
        let second = line.loud(&user, says_more, leaves);
        assert!(second > 2_000, "after the reload too: {second}");
        let all = user.iter().filter(|sample| sample.unsigned_abs() > LOUD).count();
        assert_eq!(all, first + second, "and nowhere else");
        assert_eq!(line.loud_for_certain(&user, lost, comes_back), 0, "nobody was there");
        assert!(line.loud(&agent, line.seen, says) > 1_000, "the agent's hello");
        assert!(world.spooled_files().is_empty(), "{:?}", world.spooled_files());
    }

    /// What was heard until then is spooled, and the next process makes a recording of it.
    async fn what_was_heard_before_a_crash_is_recorded(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = recorded_room(world, &tenant).await;
        let (peer, _) = link.join(None).await;
        peer.until("the agent says hello", |view| captions(view) >= 1).await;
        peer.say(speech());
        peer.until("what was said is heard", |view| users(view) == 1).await;
        world.deps().studio.spools.flush().await.unwrap();
        assert_eq!(world.spooled_files().len(), 1);
        world.restart().await;
        world.advance(seconds(1)).await;
        let call = session(&tenant, &room).await;
        assert_eq!((&call["status"], &call["end_reason"]), (&json!("failed"), &json!("node_lost")));
        assert_eq!(the_call::told(&tenant, "session.recording_completed").await.len(), 1);
        let [agent, user] = recorded(&tenant, &call).await;
        for (who, side) in [("the agent", agent), ("the person", user)] {
            let loud = side.iter().filter(|sample| sample.unsigned_abs() > LOUD).count();
            assert!(loud > 1_000, "{who}: {loud}");
        }
        assert!(world.spooled_files().is_empty(), "{:?}", world.spooled_files());
        drop(peer);
    }

    /// Nobody knows any more what it was of, or it must not be kept.
    async fn a_spool_that_nobody_needs_is_swept_away(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = recorded_room(world, &tenant).await;
        let (peer, participant) = link.join(None).await;
        peer.until("the agent says hello", |view| captions(view) >= 1).await;
        // Its first second is written when it is there.
        while world.spooled_files().is_empty() {
            world.deps().studio.spools.flush().await.unwrap();
        }
        let spool = world.spooled_files().remove(0);
        let kept = std::fs::read(&spool).unwrap();
        link.leave(&participant).await;
        peer.closed().await;
        world.settle().await;
        assert!(!spool.exists());
        // A crash has left them: one of a call that is stored, and some of none that is known, which may be another database's. One
        // of them cannot be removed, and keeps no other.
        std::fs::write(&spool, &kept).unwrap();
        let named = |nth: u8| spool.with_file_name(format!("01900000-0000-7000-8000-00000000000{nth}.spool"));
        let [stays, old, new] = [named(1), named(2), named(3)];
        std::fs::create_dir(&stays).unwrap();
        std::fs::write(&old, &kept).unwrap();
        std::fs::write(&new, &kept).unwrap();
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(7 * 86_400 + 60);
        for path in [&stays, &old] {
            std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
        world.restart().await;
        world.settle().await;
        assert_eq!(world.spooled_files(), std::slice::from_ref(&new));
        assert!(stays.exists());
        assert_eq!(the_call::told(&tenant, "session.recording_completed").await.len(), 1, "once");
        std::fs::File::open(&new).unwrap().set_modified(long_ago).unwrap();
        std::fs::remove_dir(&stays).unwrap();
        world.restart().await;
        world.settle().await;
        assert_eq!(world.spooled_files(), Vec::<std::path::PathBuf>::new());
        // The sound goes with what was said.
        let call = session(&tenant, &room).await;
        assert_eq!(tenant.api.delete(&format!("/v1/sessions/{}", call["id"].as_str().unwrap())).await.status, 204);
        world.settle().await;
        assert!(world.recorded_files().is_empty() && world.spooled_files().is_empty());
    }

    /// The commit of its answer was in doubt and stood: nothing has begun its recording, until the session is found again.
    async fn a_recording_that_was_not_begun_begins_when_its_session_is_found(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = recorded_room(world, &tenant).await;
        let (peer, participant) = link.join(None).await;
        peer.until("the agent says hello", |view| captions(view) >= 1).await;
        let deps = world.deps();
        let id = room["session_id"].as_str().unwrap().parse().unwrap();
        let key = entities::ids::TenantScoped::new(tenant.id, entities::values::Env::Test, id);
        // As if it had never been begun.
        deps.studio.spools.erase(&actors::recording::spooling::spool_name(key)).await.unwrap();
        // Twice is as good as once.
        for _ in 0..2 {
            Session::load(deps, key).await.unwrap().resume(deps);
        }
        peer.say(speech());
        peer.until("what was said is heard", |view| users(view) == 1).await;
        assert_eq!(link.leave(&participant).await.status, 204);
        peer.closed().await;
        world.settle().await;
        let [_, user] = recorded(&tenant, &session(&tenant, &room).await).await;
        let loud = user.iter().filter(|sample| sample.unsigned_abs() > LOUD).count();
        assert!(loud > 1_000, "{loud}");
    }

    /// What was heard is there once only: an hour without the store does not cost it.
    async fn an_outage_of_the_store_costs_no_sound(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = recorded_room(world, &tenant).await;
        let (peer, participant) = link.join(None).await;
        peer.until("the agent says hello", |view| captions(view) >= 1).await;
        peer.say(speech());
        peer.until("what was said is heard", |view| users(view) == 1).await;
        world.block_recordings(true);
        assert_eq!(link.leave(&participant).await.status, 204);
        peer.closed().await;
        world.settle().await;
        world.leap(minutes(60)).await;
        let call = session(&tenant, &room).await;
        let recordings = format!("/v1/sessions/{}/recordings", call["id"].as_str().unwrap());
        let waits = tenant.api.get(&recordings).await.ok()["data"][0].clone();
        let why = json!("the recording could not be stored");
        assert_eq!((&waits["status"], &waits["error"]), (&json!("processing"), &why));
        assert_eq!(world.spooled_files().len(), 1);
        world.block_recordings(false);
        world.leap(minutes(61)).await;
        let [_, user] = recorded(&tenant, &call).await;
        let loud = user.iter().filter(|sample| sample.unsigned_abs() > LOUD).count();
        assert!(loud > 1_000, "{loud}");
        assert!(world.spooled_files().is_empty(), "{:?}", world.spooled_files());
    }

    async fn who_wants_no_more_is_written_to_no_more(world: &mut World) {
        let ears = TranscriptionServer::start_with(|_, _| Heard::Words("Please stop calling me.".into())).await;
        world.change_setting("transcription_url", json!(ears.url())).await;
        let tenant = world.tenant().await;
        let agent = the_call::agent(&tenant, json!({ "first_message": "Good day, {{first_name}}." })).await;
        let whom = json!({ "first_name": "Bo", "email": "Bo@Example.com" });
        let room = create(&tenant, &agent, json!({ "participant": whom })).await;
        let (peer, _) = Link::of(world, &tenant, &room).join(None).await;
        peer.until("the agent greets by name", |view| view.notes.iter().any(|note| note["text"] == "Good day, Bo.")).await;
        peer.say(speech());
        peer.closed().await;
        world.settle().await;
        assert_eq!(session(&tenant, &room).await["end_reason"], "opt_out");
        let listed = tenant.api.get("/v1/dnc?email=bo@example.com").await.ok()["data"][0].clone();
        assert_eq!((&listed["source"], &listed["channels"]), (&json!("opt_out_voice"), &json!(["email"])));
    }

    async fn a_page_that_is_reloaded_goes_on_and_nobody_else_comes_in(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = room(world, &tenant).await;
        let (peer, participant) = link.join(None).await;
        peer.until("the agent says hello", |view| captions(view) >= 1).await;
        let (_stranger, sdp) = Peer::offer(Codec::Opus);
        let answer = link.offer(sdp, None).await;
        assert_eq!(answer.error(), (409, "invalid_state", None));
        let (_stranger, sdp) = Peer::offer(Codec::Opus);
        let answer = link.offer(sdp, Some("01900000-0000-7000-8000-000000000001")).await;
        assert_eq!(answer.error(), (409, "invalid_state", None));
        // The page is closed, and opened again.
        peer.close();
        until_lost(world, &tenant, &room).await;
        world.advance(seconds(29)).await;
        assert_eq!(link.page().await.status, 200);
        let (again, known) = link.join(Some(&participant)).await;
        assert_eq!(known, participant);
        until_found(world, &tenant, &room).await;
        let seen = again.until("it is told what was said", |view| captions(view) >= 1).await;
        assert_eq!(seen.notes[1]["text"], "Hello, this is Ann.");
        world.advance(seconds(25)).await;
        assert_eq!(get(&tenant, &room).await["status"], "joined");
        assert_eq!(the_call::told(&tenant, "room.joined").await.len(), 1);
        tenant.api.post(&format!("/v1/rooms/{}/end", link.room), json!({})).await.ok();
        again.closed().await;
        world.settle().await;
        let call = session(&tenant, &room).await;
        assert_eq!((&call["end_reason"], &call["ended_by"]), (&json!("completed"), &json!("api")));
    }

    async fn a_browser_that_is_gone_for_30_seconds_is_given_up(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = the_call::agent(&tenant, json!({ "first_message": "Hello.", "silence": { "hangup_after_seconds": 40 } })).await;
        let room = create(&tenant, &agent, json!({})).await;
        let link = Link::of(world, &tenant, &room);
        let (peer, _) = link.join(None).await;
        peer.until("the agent says hello", |view| captions(view) >= 1).await;
        peer.vanish();
        until_lost(world, &tenant, &room).await;
        world.advance(seconds(29)).await;
        assert_eq!(get(&tenant, &room).await["status"], "joined");
        // It comes back at the last moment.
        peer.come_back();
        until_found(world, &tenant, &room).await;
        world.advance(seconds(5)).await;
        assert_eq!(get(&tenant, &room).await["status"], "joined");
        peer.vanish();
        until_lost(world, &tenant, &room).await;
        world.advance(seconds(30)).await;
        let failed = get(&tenant, &room).await;
        assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("media_timeout")));
        let call = session(&tenant, &room).await;
        assert_eq!((&call["status"], &call["end_reason"]), (&json!("failed"), &json!("media_timeout")));
    }

    /// It has the answer and never sends anything; the page that was there before was let go for it.
    async fn a_page_that_comes_back_and_is_never_connected_is_given_up(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = the_call::agent(&tenant, json!({ "first_message": "Hello.", "silence": { "hangup_after_seconds": 300 } })).await;
        let room = create(&tenant, &agent, json!({})).await;
        let link = Link::of(world, &tenant, &room);
        let (peer, participant) = link.join(None).await;
        peer.until("the agent says hello", |view| captions(view) >= 1).await;
        let (_mute, sdp) = Peer::offer(Codec::Opus);
        assert_eq!(link.offer(sdp, Some(&participant)).await.status, 201);
        peer.closed().await;
        world.settle().await;
        world.advance(seconds(29)).await;
        assert_eq!(get(&tenant, &room).await["status"], "joined");
        world.advance(seconds(1)).await;
        let failed = get(&tenant, &room).await;
        assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("media_timeout")));
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["in_use"], 0);
    }

    async fn the_agent_may_end_it(world: &mut World) {
        let tenant = world.tenant().await;
        let more = json!({ "first_message": "Hello.", "silence": { "hangup_after_seconds": 10 } });
        let agent = the_call::agent(&tenant, more).await;
        let room = create(&tenant, &agent, json!({})).await;
        let link = Link::of(world, &tenant, &room);
        let (peer, _) = link.join(None).await;
        peer.until("the agent says hello", |view| captions(view) >= 1).await;
        // Nobody says anything.
        world.advance(seconds(20)).await;
        peer.closed().await;
        world.settle().await;
        assert_eq!(get(&tenant, &room).await["status"], "completed");
        assert_eq!(session(&tenant, &room).await["end_reason"], "silence_timeout");
    }
}

/// A room whose agent is recorded, and its link.
async fn recorded_room(world: &World, tenant: &Tenant) -> (Value, Link) {
    let replies = json!([{ "say": "I see." }, { "say": "Very well." }, { "say": "Go on." }]);
    let more = json!({
        "first_message": "Hello, this is Ann.", "recording": { "enabled": true },
        "brain": { "mode": "scripted", "replies": replies },
    });
    let agent = the_call::agent(tenant, more).await;
    let room = create(tenant, &agent, json!({})).await;
    let link = Link::of(world, tenant, &room);
    (room, link)
}

/// Utterances of the person that are shown.
fn users(view: &media::webrtc::peer::View) -> usize {
    view.notes.iter().filter(|note| note["role"] == "user").count()
}

/// Louder than what a codec makes of silence.
const LOUD: u16 = 1_000;

/// Its recording begins at some moment between these two.
struct Line {
    before: Instant,
    seen: Instant,
}

impl Line {
    /// Loud samples in all places at which something may stand that was heard between two moments.
    fn loud(&self, side: &[i16], from: Instant, to: Instant) -> usize {
        self.count(side, from.saturating_duration_since(self.seen), to - self.before)
    }

    /// The same, in all places at which nothing else can stand.
    fn loud_for_certain(&self, side: &[i16], from: Instant, to: Instant) -> usize {
        self.count(side, from - self.before, to.saturating_duration_since(self.seen))
    }

    fn count(&self, side: &[i16], from: Duration, to: Duration) -> usize {
        let place = |time: Duration| ((time.as_secs_f64() * 16_000.0) as usize).min(side.len());
        let part = side.get(place(from)..place(to)).unwrap_or_default();
        part.iter().filter(|sample| sample.unsigned_abs() > LOUD).count()
    }
}

async fn until_lost(world: &World, tenant: &Tenant, room: &Value) {
    until_row(world, tenant, room, |row| row.lost_at.is_some()).await;
}
async fn until_found(world: &World, tenant: &Tenant, room: &Value) {
    until_row(world, tenant, room, |row| row.lost_at.is_none()).await;
}
async fn until_row(world: &World, tenant: &Tenant, room: &Value, so: impl Fn(&entities::room::Model) -> bool) {
    let id = room["id"].as_str().unwrap().parse().unwrap();
    let key = entities::ids::TenantScoped::new(tenant.id, entities::values::Env::Test, id);
    let wall = runtime::clock::Clock::wall();
    for _ in 0..1_000 {
        if so(&entities::room::load(&world.deps().db.read, key).await.unwrap()) {
            return world.settle().await;
        }
        let _busy = wall.sleep(Duration::from_millis(25)).await;
    }
    panic!("the room did not become what was waited for");
}

/// The agent's side and the person's, at 16 kHz.
pub async fn recorded(tenant: &Tenant, call: &Value) -> [Vec<i16>; 2] {
    let recording = call["recording_id"].as_str().unwrap();
    let request = tenant
        .api
        .request(Method::GET, &format!("/v1/recordings/{recording}/audio"));
    let file = request.send().await.unwrap().bytes().await.unwrap();
    let mut reader = hound::WavReader::new(&file[..]).unwrap();
    assert_eq!((reader.spec().channels, reader.spec().sample_rate), (2, 16_000));
    let samples: Vec<i16> = reader.samples().map(Result::unwrap).collect();
    [0, 1].map(|side| samples.iter().skip(side).step_by(2).copied().collect())
}

async fn both_channels_carry_sound(tenant: &Tenant, call: &Value) {
    for (channel, side) in recorded(tenant, call).await.into_iter().enumerate() {
        let loud = side.iter().filter(|sample| sample.unsigned_abs() > LOUD).count();
        assert!(loud > 1_000, "channel {channel} has {loud} loud samples");
    }
}
