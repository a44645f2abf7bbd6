//! Who has agreed, who the workspace is by law, and what the law would say.
use super::*;

/// Under the rules as they come with the service.
const LAW: [(&str, &str); 1] = [("CALLBOARD_LAW_FILE", "")];

#[test]
fn the_law_is_asked_about_anybody_and_the_workspace_says_who_it_is() {
    on_stage_with(&LAW, async |stage| {
        let mut page = stage.visit(OWNER, "/t/acme/test/compliance", DESKTOP).await;
        page.until(&shows("There is no registered name yet.")).await;
        press(&page, "Change who you are by law").await;
        write(&page, "dialog [name=registered_name]", "Acme Ltd.").await;
        write(&page, "dialog [name=callback_number]", "12").await;
        press(&page, "Save").await;
        page.until("document.querySelector('dialog [name=callback_number][aria-invalid=true]') !== null")
            .await;
        fill(&page, "dialog [name=callback_number]", "+12025550123").await;
        press(&page, "Save").await;
        page.until(NO_DIALOG).await;
        page.until(&shows("Acme Ltd.")).await;
        let identity = stage.api.get("/v1/compliance/identity").await;
        assert_eq!(identity["callback_number"], "+12025550123");

        // Source: loi 2025-594, art. 16: the day before, and the day.
        for (day, rule) in [("2026-08-10", "fr.machines"), ("2026-08-11", "fr.optin")] {
            fill(&page, "[name=whom]", "+33612345678").await;
            fill(&page, "[name=at]", day).await;
            press(&page, "Ask").await;
            page.until(&has_cell(rule)).await;
        }
        page.until(&shows("The law does not let it pass.")).await;
        pictures(&mut page, "law").await;
        fill(&page, "[name=whom]", "12").await;
        press(&page, "Ask").await;
        page.until("document.querySelector('[name=whom][aria-invalid=true]') !== null")
            .await;

        press(&page, "Read all rules of the law pack").await;
        fill(&page, "[name=place]", "FR").await;
        press(&page, "Show").await;
        page.until(&has_cell("fr.hours")).await;
        page.until("!document.querySelector('#console').innerText.includes('us.hours')")
            .await;
        pictures(&mut page, "law-rules").await;
    });
}

/// A draft for somebody of the sandbox who is in France, which keeps the law as in live.
async fn draft_to_france(stage: &Stage) -> String {
    let agent = format!("/v1/agents/{}", stage.agent["id"].as_str().unwrap());
    stage.api.patch(&agent, json!({ "language": "fr-FR" })).await;
    let campaign = json!({ "name": "Heat pumps", "agent_id": stage.agent["id"], "seller": "Acme Ltd.", "contract_ref": "C-7",
        "from_numbers": ["+12025550177"], "sandbox_law": "enforce" });
    let id = stage.api.post("/v1/campaigns", campaign).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let zoe =
        json!({ "phone_number": "+15002340001", "first_name": "Zoë", "region": "FR", "timezone": "Europe/Paris" });
    let path = format!("/v1/campaigns/{id}/contacts");
    stage.api.post(&path, json!({ "contacts": [zoe] })).await;
    id
}

/// A table shows a rule with its source, and that verdict.
fn has_rule(rule: &str, source: &str, verdict: &str) -> String {
    format!(
        "[...document.querySelectorAll('tr')].some(({{ innerText: all, cells }}) => all.includes({}) && all.includes({})
            && cells[1].innerText.trim().startsWith({}))",
        json!(rule),
        json!(source),
        json!(verdict)
    )
}

#[test]
fn a_new_campaign_shows_the_rule_that_refuses_it_as_it_is_drafted() {
    on_stage_with(&LAW, async |stage| {
        let id = draft_to_france(stage).await;
        let path = format!("/t/acme/test/campaigns/new?id={id}&step=who");
        let mut page = stage.visit(OWNER, &path, DESKTOP).await;
        // It is open, and has asked about the first of its contacts.
        page.until(&has_cell("fr.hours")).await;
        fill(&page, "[name=at]", "2026-08-11").await;
        press(&page, "Ask").await;
        page.until(&has_cell("fr.optin")).await;
        assert_eq!(page.value(&has_cell("fr.energy_renovation")).await, false);
        assert_eq!(
            page.value(&shows("In Test these verdicts are shown and bar nothing"))
                .await,
            false
        );

        // The trade is changed, and nothing is asked again by hand. Source: C. consom. L223-1.
        fill(&page, "[name=vertical]", "energy_renovation").await;
        let refuses = has_rule("fr.energy_renovation", "C. consom. L223-1, energy renovation", "No");
        page.until(&refuses).await;
        page.until(&shows("The law does not let it pass.")).await;
        let asked = page
            .value(
                "performance.getEntriesByType('resource').map(({ name }) => new URL(name))
                    .filter(({ pathname }) => pathname.endsWith('/compliance/check')).pop().search",
            )
            .await;
        for given in [
            "purpose=marketing",
            "audience=consumer",
            "vertical=energy_renovation",
            "seller=Acme+Ltd.",
            "contract_ref=C-7",
            "channel=phone",
            "language=fr-FR",
            "from=%2B12025550177",
            "cloned_voice=false",
            "to=%2B15002340001",
            "region=FR",
            "timezone=Europe%2FParis",
        ] {
            let all = asked.as_str().unwrap();
            assert!(
                all.trim_start_matches('?').split('&').any(|one| one == given),
                "{given}: {all}"
            );
        }
        pictures(&mut page, "new-campaign-law").await;

        // Behind the list, too.
        press(&page, "Contacts").await;
        page.until(&shows("1 contact")).await;
        page.until(&has_cell("fr.hours")).await;
    });
}

#[test]
fn a_contact_shows_each_rule_that_is_asked_about_it() {
    on_stage_with(&LAW, async |stage| {
        let id = draft_to_france(stage).await;
        let path = format!("/v1/campaigns/{id}/contacts");
        let contacts = stage.api.get(&path).await;
        let contact = contacts["data"][0]["id"].as_str().unwrap();
        let found = stage.api.get(&format!("{path}/{contact}/eligibility")).await;
        let law = found["law"].as_array().unwrap();
        assert!(law.iter().any(|one| one["rule"] == "fr.hours"), "{found}");
        let mut page = stage
            .visit(VIEWER, &format!("/t/acme/test/campaigns/{id}"), DESKTOP)
            .await;
        press(&page, "Can this contact be called?").await;
        page.until(&shows("What the law says")).await;
        for one in law {
            let [rule, source, verdict] = ["rule", "source", "verdict"].map(|name| one[name].as_str().unwrap());
            // Hours pass while this is read.
            let told = match verdict {
                _ if rule.contains(".hours") => "",
                "yes" => "Yes",
                "wait" => "Not yet",
                "never" => "No",
                other => panic!("{other}: {one}"),
            };
            page.until(&has_rule(rule, source, told)).await;
        }
        pictures(&mut page, "contact-law").await;
    });
}

#[test]
fn a_consent_is_written_down_and_taken_back() {
    on_stage_with(&LAW, async |stage| {
        let mut page = stage.visit(ADMIN, "/t/acme/test/consents", DESKTOP).await;
        page.until(&shows("There is no consent yet.")).await;
        press(&page, "Add consent").await;
        write(&page, "dialog [name=phone_number]", "(500) 234-0007").await;
        write(&page, "dialog [name=seller]", "Acme Ltd.").await;
        page.click("dialog [name=channels][value=phone]").await;
        page.click("dialog [name=covers_automated_voice]").await;
        write(&page, "dialog [name=method]", "web form").await;
        fill(&page, "dialog [name=given_at]", "2026-11-02T10:00").await;
        press(&page, "Add consent").await;
        // In writing it needs what was asked, word for word.
        page.until("document.querySelector('dialog [name=request_copy][aria-invalid=true]') !== null")
            .await;
        pictures(&mut page, "consent-add").await;
        write(&page, "dialog [name=request_copy]", "Acme Ltd. may call me by machine.").await;
        press(&page, "Add consent").await;
        page.until(NO_DIALOG).await;
        page.until(&shows("Acme Ltd. may call me by machine.")).await;
        pictures(&mut page, "consent").await;

        press(&page, "Take back").await;
        write(&page, "dialog [name=reason]", "by letter").await;
        confirm(&page, "Take back").await;
        page.until(&shows("Revoked")).await;
        let consents = stage.api.get("/v1/consents").await;
        assert_eq!(
            (&consents["data"][0]["status"], &consents["data"][0]["phone_number"]),
            (&json!("revoked"), &json!("+15002340007"))
        );
        let check = stage.api.get("/v1/dnc/check?phone_number=%2B15002340007").await;
        assert_eq!(check["listed"], true, "they want no calls");

        page.go(&stage.url("/t/acme/test/consents?status=revoked")).await;
        page.until(&has_cell("+15002340007")).await;
        pictures(&mut page, "consents").await;
        let mut viewer = stage.visit(VIEWER, "/t/acme/test/consents", PHONE).await;
        viewer.until(&has_cell("+15002340007")).await;
        viewer
            .until("![...document.querySelectorAll('button')].some((one) => one.innerText.includes('Add consent'))")
            .await;
        pictures(&mut viewer, "consents-viewer").await;
    });
}
