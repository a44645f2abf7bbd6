//! What is recorded, as a foreign eye sees it: tshark looks at the phone's packets.
use super::{
    media::phone_without_keys,
    stage::{CALLEE, OURS, Stage, end, media_of},
};
use crate::{
    on_the_phone,
    world::phone::{
        likeness::found,
        sound::{SENTENCE, Sound},
        tshark,
    },
};
use serde_json::json;

/// That so much of what was loud on the line is in the recording, and as it was: a machine that is busy may cut a part in two.
fn assert_recorded((who, percent): (&str, usize), line: &Sound, recorded: &Sound) {
    let parts = found(line, recorded);
    assert!(parts.len() >= 8, "{who}: hardly anything to compare: {parts:?}");
    let alike = parts.iter().filter(|(_, likeness)| *likeness > 0.9).count();
    assert!(alike * 100 >= parts.len() * percent, "{who}: {parts:?}");
}

on_the_phone! {
    /// 46, and 38 for a foreign eye. The recording is what was on the line, on both of its sides, and the line had no gap.
    async fn a_recording_is_what_was_on_the_line(stage: &mut Stage) needs [Tshark] {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone_without_keys(at, ear.port());
        let trunk = stage.trunk(at.port(), json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        // More than a dozen parts: what is said before the answer is stored is not recorded.
        let words = "Hello, this is Ann of the clinic. I am calling about your appointment.";
        let agent = stage.agent(json!({ "first_message": words, "recording": { "enabled": true } })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let to = media_of(peer.hears("INVITE", 1).await.body());
        stage.is(&id, "in_progress").await;
        // When all of it is said: a tone shows holes, a voice what is out of its place.
        let tone = Sound::silence(6_000).then(Sound::tone(620.0, 900)).then(Sound::silence(100));
        ear.says(tone.then(Sound::of_mu_law(SENTENCE)), to, |packets| packets).await;
        stage.hang_up(&id).await;
        peer.hears("BYE", 1).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("completed", "completed"), "{ended}");
        let [our_recording, their_recording] = stage.recording(&ended).await;
        let (streams, sides) = tshark::look(&stage.file("line.pcap"), &ear.passed(), ear.port());
        // One stream each way.
        assert_eq!((streams.len(), sides.len()), (2, 2), "{streams:?}");
        let ours = streams.iter().find(|stream| stream.from == to.port()).unwrap();
        assert_eq!(ours.lost, 0, "{streams:?}");
        assert!(ours.packets > 200, "silence is sent too: {streams:?}");
        // A beat that is late is caught up: the mean stays. The phone's own thread may be late, too.
        assert!((19.0..24.0).contains(&ours.mean_ms) && ours.max_ms < 3_000.0, "{streams:?}");
        let side = |of_us: bool| &sides.iter().find(|side| (side.from == to.port()) == of_us).unwrap().sound;
        assert_recorded(("the agent", 80), side(true), &our_recording);
        // Of what a phone that is late sends all at once some is lost.
        assert_recorded(("the other side", 60), side(false), &their_recording);
        // It is recorded from the moment at which the answer is stored: 0.3 s later, and more on a machine that is busy.
        let (line, recorded) = (side(true).ms(), our_recording.ms());
        assert!(line.abs_diff(recorded) <= 1_500, "{recorded} ms of {line} ms");
        assert_eq!(recorded, their_recording.ms());
    }
}
