//! Messages, rooms and voices: written, opened, recorded and heard by clicks.
use super::*;

/// The heading has these words: a name, or a status.
fn heading(words: &str) -> String {
    format!("document.querySelector('h1').innerText.includes({})", json!(words))
}

/// The same time tomorrow, as a field for it writes it.
const TOMORROW: &str = "(() => {
    const at = new Date(Date.now() + 86_400_000);
    return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
})()";

/// The id of what the page shows.
async fn shown_id(page: &Page) -> String {
    let id = page.value("location.pathname.split('/').pop()").await;
    id.as_str().unwrap().to_owned()
}

#[test]
fn messages_are_sent_now_and_later_and_taken_back() {
    on_stage(async |stage| {
        let mut page = stage.visit(ADMIN, "/t/acme/test/messages", DESKTOP).await;
        page.until(&shows("No SMS yet.")).await;
        pictures(&mut page, "messages-empty").await;

        // What is wrong is said at its field, and nothing is sent.
        press(&page, "Send an SMS").await;
        page.write("[name=to_number]", "12").await;
        page.write("[name=body]", "It comes at 5, ê.").await;
        page.until(&shows("1 segment, Unicode")).await;
        press(&page, "Send").await;
        page.until("document.querySelector('[name=to_number]').getAttribute('aria-invalid') === 'true'")
            .await;
        pictures(&mut page, "message-refused").await;
        assert!(stage.api.all("/v1/sms_messages").await.is_empty());
        set(&page, "[name=to_number]", "+1 500 234 5670").await;
        press(&page, "Send").await;
        page.until(&heading("SMS to +15002345670")).await;
        page.until(&heading("Delivered")).await;
        let path = format!("/v1/sms_messages/{}", shown_id(&page).await);
        assert_eq!(stage.api.get(&path).await["body"], "It comes at 5, ê.");
        pictures(&mut page, "message").await;

        // Later, and not at all.
        press(&page, "Messages").await;
        press(&page, "Send an SMS").await;
        page.write("[name=to_number]", "+15002345670").await;
        page.write("[name=body]", "Tomorrow.").await;
        let tomorrow = page.value(TOMORROW).await;
        set(&page, "[name=scheduled_at]", tomorrow.as_str().unwrap()).await;
        press(&page, "Send").await;
        page.until(&shows("Set to be sent")).await;
        let path = format!("/v1/sms_messages/{}", shown_id(&page).await);
        press(&page, "Cancel message").await;
        confirm(&page, "Keep it").await;
        page.until(NO_DIALOG).await;
        assert_eq!(stage.api.get(&path).await["status"], "scheduled");
        press(&page, "Cancel message").await;
        confirm(&page, "Cancel message").await;
        page.until(&heading("Canceled")).await;
        assert_eq!(stage.api.get(&path).await["status"], "canceled");

        // One that comes in, in the sandbox, and what its sender is told.
        press(&page, "Messages").await;
        press(&page, "Simulate an incoming SMS").await;
        page.write("[name=body]", "STOP").await;
        press(&page, "Simulate").await;
        page.until(&shows("Its sender gets this reply:")).await;
        pictures(&mut page, "message-arrived").await;
        press(&page, "Show the message").await;
        page.until(&heading("SMS from +15002340199")).await;
        let came = stage.api.get("/v1/sms_messages?direction=inbound").await;
        assert_eq!(came["data"][0]["body"], "STOP", "{came}");

        // Hostile words are words; filters stand in the address.
        let hostile =
            "<script>window.hacked = true</script> \u{202e}backwards <img src=x onerror=\"window.hacked = true\">";
        let sms = json!({ "to_number": "+15002345672", "body": hostile });
        stage.api.post("/v1/sms_messages", sms).await;
        press(&page, "Messages").await;
        page.until(&shows("<script>window.hacked")).await;
        page.until("document.querySelectorAll('tbody tr').length === 4").await;
        pictures(&mut page, "messages").await;
        set(&page, "#status", "canceled").await;
        page.until("document.querySelectorAll('tbody tr').length === 1").await;
        assert_eq!(page.value("location.search").await, "?kind=sms&status=canceled");
        assert_eq!(page.value("window.hacked === undefined").await, true);

        // An e-mail; and why another one did not arrive.
        press(&page, "E-mails").await;
        page.until(&shows("No e-mail yet.")).await;
        press(&page, "Send an e-mail").await;
        page.write("[name=to]", "ann@example.com").await;
        page.write("[name=subject]", "Your parcel").await;
        page.write("[name=text]", "It comes at 5.").await;
        pictures(&mut page, "email-form").await;
        press(&page, "Send").await;
        page.until(&heading("E-mail to ann@example.com")).await;
        page.until(&heading("Sent")).await;
        let path = format!("/v1/email_messages/{}", shown_id(&page).await);
        assert_eq!(stage.api.get(&path).await["subject"], "Your parcel");
        pictures(&mut page, "email").await;
        let bad = json!({ "to": "failed@example.com", "subject": "Your parcel", "text": "x" });
        stage.api.post("/v1/email_messages", bad).await;
        press(&page, "Messages").await;
        press(&page, "E-mails").await;
        press(&page, "failed@example.com").await;
        page.until(&shows("The provider refused it.")).await;
        is_well(&page).await;
    });
}

#[test]
fn a_room_is_opened_followed_and_ended() {
    on_stage(async |stage| {
        // Somebody joins it.
        stage.browser = Browser::start(Microphone::Beeps).await.unwrap();
        let mut page = stage.visit(ADMIN, "/t/acme/test/rooms", DESKTOP).await;
        page.until(&shows("No room yet.")).await;
        press(&page, "Create a room").await;
        page.write("[name='participant.first_name']", "Zoë").await;
        set(&page, "[name=expires_in_seconds]", "3600").await;
        pictures(&mut page, "room-form").await;
        press(&page, "Create room").await;
        page.until(&heading("Room for Zoë")).await;
        page.until(&shows("Nobody has opened the link yet.")).await;
        pictures(&mut page, "room").await;
        let path = format!("/v1/rooms/{}", shown_id(&page).await);
        let room = stage.api.get(&path).await;
        let link = room["room_url"].as_str().unwrap();
        assert_eq!(page.text(".secret code").await, link);
        assert_eq!(room["agent_id"], stage.agent["id"]);

        let person = stage.browser.open(PHONE).await;
        person.microphone(link, "granted").await;
        person.go(link).await;
        page.until(&heading("Viewed")).await;
        person.state("ready").await;
        person.click("#join").await;
        person.state("talking").await;
        page.until(&heading("Joined")).await;
        page.until(&shows("Hello, this is Ann.")).await;
        pictures(&mut page, "room-joined").await;

        press(&page, "End room").await;
        page.until(&shows("It hangs up on the person who is in it")).await;
        confirm(&page, "Keep it open").await;
        page.until(NO_DIALOG).await;
        assert_eq!(stage.api.get(&path).await["status"], "joined");
        press(&page, "End room").await;
        confirm(&page, "End room").await;
        page.until(&shows("The talk is over.")).await;
        person.state("ended").await;
        assert_eq!(stage.api.get(&path).await["status"], "completed");
        press(&page, "Rooms").await;
        page.until("document.querySelectorAll('tbody tr').length === 1").await;
        pictures(&mut page, "rooms").await;

        press(&page, "Zoë").await;
        press(&page, "Delete room").await;
        confirm(&page, "Delete room").await;
        page.until(&shows("No room yet.")).await;
        assert_eq!(stage.api.get(&path).await["error"]["code"], "not_found");
        is_well(&page).await;
    });
}

/// Puts three files of 31 seconds where a person would choose them: a tone as loud as said, out of 32,767.
async fn choose_files(page: &Page, name: &str, loudness: u32) {
    let script = format!(
        "(() => {{
            const [rate, samples] = [8_000, 31 * 8_000];
            const sound = Int16Array.from({{ length: samples }}, (_, n) => {loudness} * Math.sin(n / 6));
            const head = new DataView(new ArrayBuffer(44));
            const put = (at, text) => [...text].forEach((one, n) => head.setUint8(at + n, one.charCodeAt(0)));
            put(0, 'RIFF'); put(8, 'WAVEfmt '); put(36, 'data');
            head.setUint32(4, 36 + samples * 2, true); head.setUint32(16, 16, true); head.setUint16(20, 1, true);
            head.setUint16(22, 1, true); head.setUint32(24, rate, true); head.setUint32(28, rate * 2, true);
            head.setUint16(32, 2, true); head.setUint16(34, 16, true); head.setUint32(40, samples * 2, true);
            const chosen = new DataTransfer();
            for (const n of [1, 2, 3]) {{
                chosen.items.add(new File([head, sound], `{name} ${{n}}.wav`, {{ type: 'audio/wav' }}));
            }}
            const field = document.querySelector('[name=samples]');
            field.files = chosen.files;
            field.dispatchEvent(new Event('change', {{ bubbles: true }}));
        }})()"
    );
    page.value(&script).await;
    page.until(&shows(&format!("{name} 3.wav 0:31"))).await;
}

#[test]
fn a_voice_is_recorded_uploaded_trained_and_heard() {
    on_stage(async |stage| {
        stage.browser = Browser::start(Microphone::Beeps).await.unwrap();
        let mut page = stage.visit(ADMIN, "/t/acme/test/voices", DESKTOP).await;
        page.until(&shows("Tones, no words")).await;
        press(&page, "Listen").await;
        page.until("document.querySelector('tbody audio')?.duration > 0").await;
        pictures(&mut page, "voices").await;

        press(&page, "Clone a voice").await;
        page.until(&shows("Record here")).await;
        page.microphone(&stage.url("/"), "granted").await;
        page.write("[name=name]", "Ann").await;
        press(&page, "Record").await;
        page.until(&shows("0:02 of at least 0:30")).await;
        // One only: the recording goes on meanwhile, and is to stay too short.
        page.picture("console-voice-recording").await;
        press(&page, "Stop").await;
        page.until(&shows("Shorter than 30 seconds: it will be left out."))
            .await;
        // It is listened to before it is sent.
        page.until("document.querySelector('.take audio').duration > 1").await;
        press(&page, "Clone voice").await;
        page.until(&shows("At least 3 samples of 30 seconds are needed; you have 0."))
            .await;
        choose_files(&page, "take", 9_000).await;
        press(&page, "Clone voice").await;
        page.until(&shows("You need the consent of the person who speaks."))
            .await;
        pictures(&mut page, "voice-samples").await;
        let clones = stage.api.get("/v1/voices?type=cloned").await;
        assert_eq!(clones["data"], json!([]));
        page.click("[name=consent_attested]").await;
        press(&page, "Clone voice").await;
        page.until(&heading("Ready")).await;
        let voice = stage.api.get(&format!("/v1/voices/{}", shown_id(&page).await)).await;
        let samples = &voice["sample_details"];
        assert_eq!(voice["name"], "Ann");
        // What was recorded here is a file like any other, only too short.
        assert_eq!(samples[0]["file_name"], "recording-1.wav", "{voice}");
        assert_eq!(samples[0]["format"], "wav");
        assert_eq!(samples[0]["fault"], "sample_too_short");
        assert!(samples[0]["duration_seconds"].as_f64().unwrap() >= 2.0);
        assert_eq!(samples[3]["fault"], Value::Null);
        press(&page, "Listen").await;
        page.until("document.querySelector('main section audio')?.duration > 0")
            .await;
        pictures(&mut page, "voice").await;

        // A training that fails says why; with better samples it does not.
        press(&page, "Voices").await;
        press(&page, "Clone a voice").await;
        page.write("[name=name]", "Ben").await;
        choose_files(&page, "quiet", 9).await;
        page.click("[name=consent_attested]").await;
        press(&page, "Clone voice").await;
        page.until(&heading("Failed")).await;
        page.until(&shows("Too quiet. Record nearer to the microphone.")).await;
        pictures(&mut page, "voice-failed").await;
        choose_files(&page, "louder", 9_000).await;
        press(&page, "Add samples").await;
        page.until(&shows("They were added. Now train it again.")).await;
        press(&page, "Train again").await;
        page.until(&heading("Ready")).await;
        let path = format!("/v1/voices/{}", shown_id(&page).await);
        assert_eq!(stage.api.get(&path).await["samples"], 6);

        press(&page, "Delete voice").await;
        confirm(&page, "Keep it").await;
        page.until(NO_DIALOG).await;
        assert_eq!(stage.api.get(&path).await["status"], "ready");
        press(&page, "Delete voice").await;
        confirm(&page, "Delete voice").await;
        page.until("location.pathname === '/t/acme/test/voices'").await;
        assert_eq!(stage.api.get(&path).await["error"]["code"], "not_found");
        is_well(&page).await;
    });
}
