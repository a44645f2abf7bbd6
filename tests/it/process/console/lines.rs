//! Whom nobody may call, the numbers that are called and called from, and the trunks that calls go over.
use super::*;
use crate::world::registrar::Registrar;

/// Chooses a file as spreadsheets write it: in UTF-16, with semicolons.
async fn choose_file(page: &Page, text: &str) {
    let script = format!(
        "(() => {{
            const text = {};
            const bytes = new Uint8Array(2 + 2 * text.length);
            bytes.set([0xff, 0xfe]);
            for (let n = 0; n < text.length; n += 1) {{
                bytes.set([text.charCodeAt(n) & 255, text.charCodeAt(n) >> 8], 2 + 2 * n);
            }}
            const chosen = new DataTransfer();
            chosen.items.add(new File([bytes], 'list.csv', {{ type: 'text/csv' }}));
            const field = document.querySelector('dialog [type=file]');
            field.files = chosen.files;
            return field.files.length;
        }})()",
        json!(text)
    );
    page.until(&is_seen("dialog [type=file]")).await;
    assert_eq!(page.value(&script).await, 1);
}

#[test]
fn the_do_not_call_list_is_asked_filled_and_emptied() {
    on_stage(async |stage| {
        let of = |number: &str| format!("/v1/dnc/check?phone_number=%2B{number}");
        let mut page = stage.visit(ADMIN, "/t/acme/test/dnc", DESKTOP).await;
        page.until(&shows("Nobody is on the list yet.")).await;
        write(&page, "[name=who]", "(500) 234-0007").await;
        press(&page, "Check").await;
        page.until(&shows("is not on the list.")).await;

        // What was asked for stands in the dialog already.
        press(&page, "Add to the list").await;
        page.until("document.querySelector('dialog [name=who]')?.value === '(500) 234-0007'")
            .await;
        write(&page, "dialog [name=reason]", "asked by mail").await;
        press(&page, "Add").await;
        page.until(&shows("+15002340007 is on the list for calls and texts."))
            .await;
        let entry = stage.api.get(&of("15002340007")).await["entry"].clone();
        assert_eq!(
            (entry["reason"].as_str(), entry["channels"].clone()),
            (Some("asked by mail"), json!(["phone", "sms"]))
        );
        pictures(&mut page, "dnc").await;

        press(&page, "Import a CSV file").await;
        choose_file(&page, "phone_number;reason\r\n+15002340008;été\r\n12;too short\r\n").await;
        press(&page, "Import").await;
        page.until(&shows("2 rows read")).await;
        page.until(&has_cell("is not a phone number")).await;
        assert_eq!(stage.api.get(&of("15002340008")).await["entry"]["reason"], "été");
        pictures(&mut page, "dnc-import").await;
        press(&page, "Hide this import").await;
        page.until("location.search === ''").await;

        // Somebody says so in a call; the page follows, and tells where.
        let call = json!({ "to_number": "+15002340005", "agent_id": stage.agent["id"] });
        stage.api.post("/v1/sessions", call).await;
        page.until(&has_cell("Said so in a call")).await;
        press(&page, "Remove").await;
        page.until(&shows("They asked not to be contacted.")).await;
        press(&page, "Take off the list").await;
        page.until("document.querySelector('dialog [name=reason][aria-invalid=true]') !== null")
            .await;
        assert_eq!(stage.api.get(&of("15002340005")).await["listed"], true);
        pictures(&mut page, "dnc-remove").await;
        write(&page, "dialog [name=reason]", "agreed anew, in writing").await;
        press(&page, "Take off the list").await;
        page.until(&shows("+15002340005 is no longer on the list.")).await;
        assert_eq!(stage.api.get(&of("15002340005")).await["listed"], false);

        // The address narrows it.
        page.go(&stage.url("/t/acme/test/dnc?source=import")).await;
        page.until(&has_cell("+15002340008")).await;
        assert_eq!(page.value("document.querySelectorAll('tbody tr').length").await, 1);

        let mut viewer = stage.visit(VIEWER, "/t/acme/test/dnc", PHONE).await;
        viewer.until(&has_cell("+15002340007")).await;
        let buttons = viewer
            .value("[...document.querySelectorAll('main button')].map((one) => one.innerText).join()")
            .await;
        for word in ["Add", "Import", "Remove"] {
            assert!(!buttons.as_str().unwrap().contains(word), "{word}: {buttons}");
        }
        pictures(&mut viewer, "dnc-viewer").await;
    });
}

#[test]
fn a_number_gets_an_agent_and_is_called() {
    on_stage(async |stage| {
        let mut page = stage.visit(ADMIN, "/t/acme/test/numbers", DESKTOP).await;
        page.until(&shows("No number yet.")).await;
        press(&page, "Add number").await;
        write(&page, "dialog [name=phone_number]", "(500) 555-0100").await;
        write(&page, "dialog [name=label]", "Front desk").await;
        fill(&page, "dialog [name=agent_id]", stage.agent["id"].as_str().unwrap()).await;
        // What is wrong is said at its field, and nothing is made.
        fill(&page, "dialog [name='inbound.without_agent']", "play_message").await;
        press(&page, "Add number").await;
        page.until("document.querySelector('dialog [name=\"inbound.message\"][aria-invalid=true]') !== null")
            .await;
        assert_eq!(stage.api.get("/v1/numbers").await["data"], json!([]));
        write(&page, "dialog [name='inbound.message']", "We call you back.").await;
        press(&page, "Add number").await;
        page.until("document.querySelector('h1').innerText.includes('+15005550100')")
            .await;
        assert_eq!(stage.api.get("/v1/numbers").await["data"][0]["label"], "Front desk");

        press(&page, "Simulate a call").await;
        page.until(&shows("The agent takes the call.")).await;
        page.until("document.querySelector('[aria-labelledby=rate]').innerText.includes('Answer rate')")
            .await;
        pictures(&mut page, "number").await;
        press(&page, "To the call").await;
        page.until(&shows("Hello, this is Ann.")).await;
        let calls = stage.api.get("/v1/sessions?direction=inbound").await;
        assert_eq!(calls["data"][0]["to_number"], "+15005550100");

        press(&page, "Numbers").await;
        page.until(&has_cell("Front desk")).await;
        press(&page, "Change limits").await;
        fill(&page, "dialog [name=limit]", "8").await;
        fill(&page, "dialog [name=inbound_reserve]", "8").await;
        press(&page, "Save").await;
        page.until("document.querySelector('dialog [name=inbound_reserve][aria-invalid=true]') !== null")
            .await;
        fill(&page, "dialog [name=inbound_reserve]", "2").await;
        press(&page, "Save").await;
        page.until(&shows("of 8 in use in Test")).await;
        assert_eq!(stage.api.get("/v1/concurrency").await["inbound_reserve"], 2);
        page.until(NO_DIALOG).await;
        pictures(&mut page, "numbers").await;

        // The sandbox shows the code that is texted elsewhere.
        press(&page, "Verified numbers").await;
        press(&page, "Verify a number").await;
        write(&page, "dialog [name=phone_number]", "+1 202 555 0140").await;
        press(&page, "Send code").await;
        page.until("document.querySelector('dialog[open] [name=code]') !== null")
            .await;
        write(&page, "dialog [name=code]", "no code").await;
        press(&page, "Confirm").await;
        page.until("document.querySelector('dialog [name=code][aria-invalid=true]') !== null")
            .await;
        let code = page.text("dialog strong").await;
        fill(&page, "dialog [name=code]", &code).await;
        press(&page, "Confirm").await;
        page.until("document.querySelector('td .badge.good')?.innerText === 'Verified'")
            .await;
        assert_eq!(
            stage.api.get("/v1/verified_numbers").await["data"][0]["status"],
            "verified"
        );
        page.until(NO_DIALOG).await;
        pictures(&mut page, "verified-numbers").await;

        press(&page, "Your numbers").await;
        press(&page, "+15005550100").await;
        press(&page, "Delete").await;
        confirm(&page, "Delete number").await;
        page.until(&shows("No number yet.")).await;
        assert_eq!(stage.api.get("/v1/numbers").await["data"], json!([]));
        is_well(&page).await;
    });
}

#[test]
fn a_trunk_is_made_tested_corrected_paused_and_deleted() {
    on_stage(async |stage| {
        let peer = Registrar::start("acme", "secret").await;
        let mut page = stage.visit(ADMIN, "/t/acme/test/trunks", DESKTOP).await;
        page.until(&shows("No SIP trunk yet.")).await;
        press(&page, "Add trunk").await;
        write(&page, "[name=name]", "Carrier").await;
        write(&page, "[name=host]", &peer.address.to_string()).await;
        write(&page, "[name=username]", "acme").await;
        write(&page, "[name=password]", "wrong").await;
        page.value("document.querySelectorAll('details.group').forEach((group) => { group.open = true; })")
            .await;
        page.click("[name='register.enabled']").await;
        fill(&page, "[name='codecs[1]']", "pcmu").await;
        pictures(&mut page, "new-trunk").await;
        press(&page, "Add trunk").await;
        page.until("document.querySelector('[name=codecs][aria-invalid=true]') !== null")
            .await;
        fill(&page, "[name='codecs[1]']", "g722").await;
        press(&page, "Add trunk").await;
        page.until(&shows("Where it leads")).await;
        let trunk = stage.api.get("/v1/sip_trunks").await["data"][0].clone();
        let path = format!("/v1/sip_trunks/{}", trunk["id"].as_str().unwrap());
        assert_eq!(
            (&trunk["codecs"], &trunk["register"]["enabled"], &trunk["password_set"]),
            (&json!(["pcmu", "g722"]), &json!(true), &json!(true))
        );

        press(&page, "Test trunk").await;
        page.until(&shows("It answered 200 OK")).await;
        page.until(&shows("It answered 401")).await;
        page.until(&shows("The peer refuses the username or the password"))
            .await;
        pictures(&mut page, "trunk-test").await;
        press(&page, "Close").await;
        page.until(&shows("The peer answered,")).await;

        // A password is never shown again, and stays if no other is written.
        press(&page, "Edit").await;
        page.until("document.querySelector('[name=password]')?.value === ''")
            .await;
        fill(&page, "[name=name]", "The carrier").await;
        press(&page, "Save").await;
        page.until("document.querySelector('h1').innerText.startsWith('The carrier')")
            .await;
        assert_eq!(stage.api.get(&path).await["password_set"], true);
        press(&page, "Edit").await;
        write(&page, "[name=password]", "secret").await;
        press(&page, "Save").await;
        page.until(&shows("Where it leads")).await;
        press(&page, "Test trunk").await;
        page.until("[...document.querySelectorAll('dialog .badge')].map((one) => one.innerText).join() === 'Yes,Yes'")
            .await;
        press(&page, "Close").await;
        assert!(peer.count("REGISTER asks") > 0, "{:?}", peer.heard());

        press(&page, "Pause").await;
        page.until(&shows("Paused by hand: nothing is dialed over it.")).await;
        assert_eq!(stage.api.get(&path).await["paused"], true);
        pictures(&mut page, "trunk").await;
        press(&page, "Resume").await;
        stage.api.until(&path, |trunk| trunk["paused"] == false).await;

        // A number keeps it from being deleted.
        let number = json!({ "phone_number": "+15005550177", "trunk_id": trunk["id"] });
        let number = stage.api.post("/v1/numbers", number).await;
        press(&page, "Delete").await;
        confirm(&page, "Delete trunk").await;
        page.until(&shows("use this trunk: +15005550177")).await;
        press(&page, "Keep it").await;
        let number = format!("{}/v1/numbers/{}", stage.api.url, number["id"].as_str().unwrap());
        let deleting = stage.api.client.delete(number).bearer_auth(&stage.api.key);
        assert_eq!(deleting.send().await.unwrap().status(), 204);
        press(&page, "Delete").await;
        confirm(&page, "Delete trunk").await;
        page.until(&shows("No SIP trunk yet.")).await;
        assert_eq!(stage.api.get("/v1/sip_trunks").await["data"], json!([]));
        is_well(&page).await;
    });
}
