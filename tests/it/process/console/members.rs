//! The workspace as its people run it: who belongs to it, how they come in, what it has paid, and what it holds about whom.
use super::*;
use std::time::Duration;

const GUEST: &str = "carl@b.co";
const OTHER_PASSWORD: &str = "another correct horse";

/// Where the newest e-mail with such a link leads. Without a mail server the service keeps e-mails in a folder.
async fn link_in_mail(stage: &Stage, page: &str) -> String {
    let clock = runtime::clock::Clock::wall();
    let folder = stage.place.folder.path().join("callboard-mail");
    let begins = stage.url(&format!("/{page}#"));
    for _ in 0..1500 {
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut files: Vec<_> = files.map(|file| file.path()).collect();
        // Their names are ids, which grow.
        files.sort();
        let link = files.iter().rev().find_map(|file| {
            let mail = std::fs::read_to_string(file).ok()?;
            let link = &mail[mail.find(&begins)?..];
            // One that is being written has no end of the line yet.
            link.find(['\r', '\n']).map(|end| link[..end].to_owned())
        });
        if let Some(link) = link {
            return link;
        }
        let _busy = clock.sleep(Duration::from_millis(40)).await;
    }
    panic!("no e-mail leads to {begins}");
}

/// In the place of what is in the field.
async fn rewrite(page: &Page, selector: &str, text: &str) {
    page.value(&format!("document.querySelector({}).value = ''", json!(selector)))
        .await;
    page.write(selector, text).await;
}

async fn choose(page: &Page, selector: &str, value: &str) {
    let script = format!("document.querySelector({}).value = {}", json!(selector), json!(value));
    page.value(&script).await;
}

async fn dialog(page: &Page) {
    page.until("document.querySelector('dialog[open]') !== null").await;
}

/// What a request of the page itself is answered: its status.
async fn status(page: &Page, path: &str) -> Value {
    page.value(&format!("fetch({}).then((answer) => answer.status)", json!(path)))
        .await
}

async fn body(page: &Page, path: &str) -> Value {
    page.value(&format!("fetch({}).then((answer) => answer.json())", json!(path)))
        .await
}

/// Leaves the console, whose pages go to the sign-in by themselves when their session has ended.
async fn rest(stage: &Stage, page: &Page) {
    page.go(&stage.url("/login")).await;
    assert_eq!(status(page, "/v1/_internal/me").await, 200);
}

/// A card of a page outside the console.
fn card(id: &str) -> String {
    format!("document.querySelector('#{id}')?.hidden === false")
}

#[test]
fn somebody_is_invited_joins_gets_another_role_and_is_let_go() {
    on_stage(async |stage| {
        let mut page = stage.visit(OWNER, "/t/acme/test/members", DESKTOP).await;
        page.until(&shows(VIEWER)).await;
        page.until(&shows("No invitation is open.")).await;
        press(&page, "Invite").await;
        dialog(&page).await;
        page.write("dialog [name=email]", VIEWER).await;
        press(&page, "Send invitation").await;
        page.until(&shows("This person is already a member.")).await;
        rewrite(&page, "dialog [name=email]", GUEST).await;
        press(&page, "Send invitation").await;
        page.until(&shows("The invitation to carl@b.co has been sent.")).await;
        page.until(NO_DIALOG).await;
        pictures(&mut page, "members").await;
        page.screen(DESKTOP).await;

        let link = link_in_mail(stage, "join").await;
        let mut guest = stage.browser.open(PHONE).await;
        guest.go(&link).await;
        guest.until(&card("join-card")).await;
        assert_eq!(guest.value("location.hash").await, "", "the link is in no history");
        let invited = guest.text("#join-card").await;
        assert!(invited.contains("Join Acme") && invited.contains("viewer"), "{invited}");
        pictures(&mut guest, "join").await;
        guest.write("#password", "short").await;
        guest.click("#join > button").await;
        guest
            .until("document.querySelector('#password-error').innerText.includes('12 characters')")
            .await;
        rewrite(&guest, "#password", OTHER_PASSWORD).await;
        guest.leave_by("#join > button").await;
        guest.until("document.querySelector('#console h1') !== null").await;
        assert_eq!(guest.value("location.pathname").await, "/t/acme/test/overview");
        guest.until(&shows("not change anything")).await;
        let late = stage.browser.open(DESKTOP).await;
        late.go(&link).await;
        late.until(&card("no-invitation")).await;

        page.reload().await;
        page.until(&shows(GUEST)).await;
        page.until(&shows("No invitation is open.")).await;
        rest(stage, &guest).await;
        page.click("[aria-label='Change role: carl@b.co']").await;
        dialog(&page).await;
        choose(&page, "dialog [name=role]", "admin").await;
        press(&page, "Change role").await;
        page.until(&shows("carl@b.co is now: Admin.")).await;
        assert_eq!(
            status(&guest, "/v1/_internal/me").await,
            401,
            "who gets another role signs in again"
        );
        page.click("[aria-label='Remove: carl@b.co']").await;
        confirm(&page, "Keep").await;
        page.until(NO_DIALOG).await;
        page.click("[aria-label='Remove: carl@b.co']").await;
        confirm(&page, "Remove").await;
        page.until(&shows("carl@b.co is no longer a member.")).await;
        let members = body(&page, "/v1/_internal/t/acme/members").await;
        assert_eq!(members["data"].as_array().unwrap().len(), 3, "{members}");
        // The last owner stays.
        page.click("[aria-label='Remove: a@b.co']").await;
        confirm(&page, "Remove").await;
        page.until(&shows("make another member an owner first")).await;
        press(&page, "Keep").await;

        press(&page, "Change").await;
        dialog(&page).await;
        rewrite(&page, "dialog [name=name]", "Acme & Söhne").await;
        choose(&page, "dialog [name=country]", "DE").await;
        choose(&page, "dialog [name=timezone]", "Europe/Berlin").await;
        press(&page, "Save").await;
        page.until(&shows("The workspace has been changed.")).await;
        let workspace = body(&page, "/v1/_internal/t/acme").await;
        assert_eq!(
            (&workspace["name"], &workspace["country"], &workspace["timezone"]),
            (&json!("Acme & Söhne"), &json!("DE"), &json!("Europe/Berlin"))
        );
        assert_eq!(page.text(".workspace-name").await, "Acme & Söhne");
        is_well(&page).await;
    });
}

#[test]
fn a_person_sees_and_ends_sessions_and_replaces_a_lost_password() {
    on_stage(async |stage| {
        let mut page = stage.visit(VIEWER, "/t/acme/test/account", DESKTOP).await;
        page.until(&shows("This one")).await;
        let other = stage.visit(VIEWER, "/t/acme/test/members", PHONE).await;
        other.until(&shows(OWNER)).await;
        other.until(&shows("Only owners can invite")).await;
        let buttons = other.value("document.querySelectorAll('main button').length").await;
        assert_eq!(buttons, 0, "viewers change nothing");
        rest(stage, &other).await;
        page.reload().await;
        page.until("document.querySelectorAll('tbody tr').length === 2").await;
        pictures(&mut page, "account").await;
        page.screen(DESKTOP).await;
        page.click("tbody [aria-label^='Sign out']").await;
        confirm(&page, "Sign out").await;
        page.until(&shows("That session has ended.")).await;
        page.until("document.querySelectorAll('tbody tr').length === 1").await;
        assert_eq!(status(&other, "/v1/_internal/me").await, 401);

        press(&page, "Change password").await;
        dialog(&page).await;
        page.write("dialog [name=current_password]", "not this one").await;
        page.write("dialog [name=new_password]", OTHER_PASSWORD).await;
        press(&page, "Change password").await;
        page.until(&shows("the password is wrong")).await;
        rewrite(&page, "dialog [name=current_password]", PASSWORD).await;
        press(&page, "Change password").await;
        page.until(&shows("Your password is changed.")).await;
        // This session stays.
        rest(stage, &page).await;

        // It is lost all the same.
        let mut lost = stage.browser.open(PHONE).await;
        lost.go(&stage.url("/login")).await;
        lost.leave_by("a[href='/reset']").await;
        lost.until(&card("ask-card")).await;
        lost.write("#email", VIEWER).await;
        lost.click("#ask > button").await;
        lost.until(&card("sent")).await;
        pictures(&mut lost, "reset-sent").await;
        let link = link_in_mail(stage, "reset").await;
        let mut found = stage.browser.open(PHONE).await;
        found.go(&link).await;
        found.until(&card("reset-card")).await;
        pictures(&mut found, "reset").await;
        found.write("#password", PASSWORD).await;
        found.click("#reset > button").await;
        found.until(&card("done")).await;
        assert_eq!(status(&page, "/v1/_internal/me").await, 401, "all sessions end");
        let late = stage.browser.open(DESKTOP).await;
        late.go(&link).await;
        late.until(&card("reset-card")).await;
        late.write("#password", OTHER_PASSWORD).await;
        late.click("#reset > button").await;
        late.until(&card("expired")).await;

        found.leave_by("#done a").await;
        found.write("#email", VIEWER).await;
        found.write("#password", PASSWORD).await;
        found.leave_by("#login > button").await;
        // The page of the keys leads to the account.
        found
            .until("document.querySelector('#user-email')?.getAttribute('href') === '/t/acme/test/account'")
            .await;
        found.leave_by("#user-email").await;
        found.until(&shows("Where you are signed in")).await;
        press(&found, "Sign out everywhere").await;
        dialog(&found).await;
        found
            .until("document.querySelector('dialog[open] .danger') !== null")
            .await;
        found.leave_by("dialog[open] .danger").await;
        assert_eq!(found.value("location.pathname").await, "/login");
        assert_eq!(status(&found, "/v1/_internal/me").await, 401);
    });
}

#[test]
fn an_admin_does_all_but_give_others_access() {
    on_stage(async |stage| {
        let mut page = stage.visit(ADMIN, "/t/acme/test/members", DESKTOP).await;
        page.until(&shows(VIEWER)).await;
        let tools = "[...document.querySelectorAll('#console button')].map((one) => one.innerText).filter((word) => /Invite|Remove|Change/.test(word))";
        assert_eq!(page.value(tools).await, json!([]), "only owners say who belongs to it");
        pictures(&mut page, "members-admin").await;
        let join = format!(
            "fetch('/v1/_internal/t/acme/members', {{ method: 'POST', headers: {{ 'Content-Type': 'application/json' }}, \
             body: JSON.stringify({{ email: {}, role: 'owner' }}) }}).then((answer) => answer.status)",
            json!(ADMIN)
        );
        assert_eq!(page.value(&join).await, 403);
        press(&page, "Compliance").await;
        page.until(&shows("Only owners can read this.")).await;
        // What a key may do, an admin may, and a secret is shown once the password was given.
        press(&page, "Webhooks").await;
        page.until(&shows("Add endpoint")).await;
        let create = "fetch('/v1/_internal/t/acme/test/webhook_endpoints', { method: 'POST', headers: { 'Content-Type': 'application/json' }, \
             body: JSON.stringify({ url: 'https://example.com/hook', event_types: ['*'] }) }).then((answer) => answer.status)";
        assert_eq!(page.value(create).await, 201);
        is_well(&page).await;
    });
}

#[test]
fn credits_are_explained_and_topped_up_and_a_person_is_erased() {
    on_stage(async |stage| {
        // What is free sets nothing aside.
        stage.serving.kill().unwrap();
        stage.serving.wait().unwrap();
        stage.serving = stage.place.serve(&[
            ("CALLBOARD_SANDBOX_SPEED", SPEED),
            ("CALLBOARD_VOICE", "tones"),
            ("CALLBOARD_CALL_PRICE_CENTS_PER_MINUTE", "60"),
        ]);
        let story = json!({ "say": "And then I said to my neighbour that she should call you. ".repeat(15) });
        let call = json!({ "to_number": "+15002345600", "agent_id": stage.agent["id"], "sandbox": { "script": vec![story; 50] } });
        stage.api.post("/v1/sessions", call).await;
        let mut page = stage.visit(OWNER, "/t/acme/test/credits", DESKTOP).await;
        page.until(&shows("Call with +15002345600")).await;
        press(&page, "Top up").await;
        dialog(&page).await;
        page.write("dialog [name=amount_cents]", "0.50").await;
        press(&page, "Top up").await;
        page.until(&shows("Enter an amount from $1.00")).await;
        rewrite(&page, "dialog [name=amount_cents]", "25").await;
        press(&page, "Top up").await;
        page.until(&shows("$25.00 has been added.")).await;
        let topups = stage.api.get("/v1/credits/topups").await;
        assert_eq!(
            (&topups["data"][0]["amount_cents"], &topups["data"][0]["status"]),
            (&json!(2500), &json!("succeeded"))
        );
        press(&page, "Change warning").await;
        dialog(&page).await;
        rewrite(&page, "dialog [name=warning_threshold_cents]", "12.34").await;
        press(&page, "Save").await;
        page.until(&shows("$12.34")).await;
        assert_eq!(stage.api.get("/v1/credits").await["warning_threshold_cents"], 1234);
        page.until("document.querySelector('[aria-labelledby=ledger] tbody button') !== null")
            .await;
        page.click("[aria-labelledby=ledger] tbody button").await;
        page.until(&shows("Hash")).await;
        press(&page, "Close").await;
        pictures(&mut page, "credits").await;
        page.screen(DESKTOP).await;

        // One call, and a contact of the same number that nobody has called.
        let call =
            json!({ "to_number": "+15002340000", "agent_id": stage.agent["id"], "contact": { "first_name": "Zoë" } });
        let session = stage.api.post("/v1/sessions", call).await;
        let session = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
        stage.api.until(&session, |session| session["phase"] == "ended").await;
        let campaign = stage.campaign("Never called", 1).await;
        let sms = json!({ "to_number": "+15002340000", "body": "Your parcel comes at five." });
        let sms = stage.api.post("/v1/sms_messages", sms).await;
        let sms = format!("/v1/sms_messages/{}", sms["id"].as_str().unwrap());
        stage.api.until(&sms, |sms| !sms["ended_at"].is_null()).await;
        let reply = json!({ "to_number": "+15002349999", "from_number": "+15002340000", "body": "Leave it with Zoë." });
        let reply = stage.api.post("/v1/_sandbox/inbound_sms", reply).await;
        let reply = format!("/v1/sms_messages/{}", reply["message"]["id"].as_str().unwrap());
        press(&page, "Compliance").await;
        page.until(&shows("How long things are kept")).await;
        page.write("[name=person]", "not a number").await;
        page.key("Enter").await;
        page.until(&shows("Enter a number with + and its country code")).await;
        rewrite(&page, "[name=person]", "+1 (500) 234-0000").await;
        page.key("Enter").await;
        page.until(&shows("Held about +15002340000")).await;
        page.until(&shows("Erase what can be erased")).await;
        pictures(&mut page, "compliance").await;
        page.screen(DESKTOP).await;
        press(&page, "Erase what can be erased").await;
        confirm(&page, "Cancel").await;
        page.until(NO_DIALOG).await;
        assert_eq!(stage.api.get(&session).await["phase"], "ended", "it asks first");
        press(&page, "Erase what can be erased").await;
        confirm(&page, "Erase").await;
        page.until(&shows("Erased: 2 SMS, 1 contact, 1 call")).await;
        pictures(&mut page, "erased").await;
        for erased in [&session, &sms, &reply] {
            assert_eq!(stage.api.get(erased).await["error"]["code"], "not_found");
        }
        let contacts = format!("/v1/campaigns/{}/contacts", campaign["id"].as_str().unwrap());
        assert_eq!(stage.api.get(&contacts).await["data"], json!([]));
        let check = stage.api.get("/v1/dnc/check?phone_number=%2B15002340000").await;
        assert_eq!(check["listed"], true, "nobody calls them again");

        // Who did it.
        page.reload().await;
        page.until(&shows("DELETE /v1/people")).await;
        is_well(&page).await;
    });
}
