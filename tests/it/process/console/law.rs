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
