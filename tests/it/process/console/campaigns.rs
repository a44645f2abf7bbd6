//! Campaigns as people make them: of an agent and a list of their own, with rules, looked ahead, started; and changed while they run.
use super::*;

/// Chooses a file with these bytes.
async fn choose(stage: &Stage, page: &Page, name: &str, bytes: &[u8]) {
    let file = stage.place.folder.path().join(name);
    std::fs::write(&file, bytes).unwrap();
    page.until("document.querySelector('[type=file]') !== null").await;
    page.upload("[type=file]", &file).await;
}

/// As Excel writes `Unicode text`.
fn utf16(text: &str) -> Vec<u8> {
    let marked = std::iter::once(0xfeff).chain(text.encode_utf16());
    marked.flat_map(u16::to_le_bytes).collect()
}

/// The id of the draft that the page is about.
async fn draft(page: &Page) -> String {
    page.until("new URLSearchParams(location.search).has('id')").await;
    let id = page.value("new URLSearchParams(location.search).get('id')").await;
    id.as_str().unwrap().to_owned()
}

/// The first step, filled in and left.
async fn begin(stage: &Stage, page: &Page, name: &str) -> String {
    press(page, "Campaigns").await;
    press(page, "New campaign").await;
    page.until("document.querySelector('[name=agent_id]') !== null").await;
    page.write("[name=name]", name).await;
    set(page, "[name=agent_id]", stage.agent["id"].as_str().unwrap()).await;
    press(page, "Next: contacts").await;
    let id = draft(page).await;
    page.until("document.querySelector('[type=file]') !== null").await;
    id
}

/// What the columns of the list will be.
const COLUMNS: &str = "[...document.querySelectorAll('td select')].map(({ value }) => value).join()";

#[test]
fn a_list_becomes_a_campaign_that_calls() {
    on_stage(async |stage| {
        let mut page = stage.visit(ADMIN, "/t/acme/test/campaigns", DESKTOP).await;
        press(&page, "New campaign").await;
        page.until("document.querySelector('[name=agent_id]') !== null").await;
        press(&page, "Next: contacts").await;
        page.until(&shows("Choose an agent.")).await;
        pictures(&mut page, "new-campaign").await;
        let id = begin(stage, &page, "Spring check-up").await;
        let path = format!("/v1/campaigns/{id}");
        assert_eq!(stage.api.get(&path).await["status"], "draft");

        // A quote that is never closed is said, and nothing is sent.
        choose(
            stage,
            &page,
            "broken.csv",
            b"phone,name\n+15002340000,\"Ann\n+15002340010,Bob\n",
        )
        .await;
        page.until(&shows("Line 2: a cell begins with a quote")).await;

        // What a spreadsheet wrote: a cell of two lines, an unknown zone, an empty row, and a row that is too long.
        let list = "Vorname;Telefon;Zeitzone;Tarif\r\n\
            Zoë;(500) 234-0000;Europe/Berlin;\"gold\r\nplus\"\r\n\
            Bob;+15002340010;Mars/Olympus;x\r\n\
            ;;;\r\n\
            Eve;+15002340020;;\"a;b\";more\r\n\
            Ann;+15002340030;;silver\r\n";
        choose(stage, &page, "list.csv", &utf16(list)).await;
        page.until(&shows("list.csv: 4 rows, 4 columns, UTF-16")).await;
        assert_eq!(page.value(COLUMNS).await, "first_name,phone_number,timezone,variable");
        set(&page, "td input", "plan").await;
        pictures(&mut page, "new-campaign-columns").await;
        // Two columns cannot be one field.
        set(&page, "tr:nth-child(3) select", "first_name").await;
        press(&page, "Import 4 rows").await;
        page.until(&shows("Two columns are “First name”")).await;
        set(&page, "tr:nth-child(3) select", "timezone").await;
        press(&page, "Import 4 rows").await;
        page.until(&shows("Finished: 4 rows were read.")).await;
        page.until(&shows("2 contacts are in this campaign.")).await;
        pictures(&mut page, "new-campaign-imported").await;
        // Lines are those of the person's own file.
        let imports = stage.api.get(&format!("/v1/imports?campaign_id={id}")).await;
        let import = imports["data"][0]["id"].as_str().unwrap();
        let refused = stage.api.get(&format!("/v1/imports/{import}")).await["rejections"].clone();
        let lines = [&refused[0]["line"], &refused[1]["line"], &refused[2]["line"]];
        assert_eq!(lines, [&json!(4), &json!(6), &Value::Null], "{refused}");
        let contacts = stage.api.all(&format!("{path}/contacts")).await;
        assert_eq!(contacts[0]["variables"]["plan"], "gold\nplus");
        assert_eq!(contacts[0]["first_name"], "Zoë");
        // The next list with these columns is known.
        press(&page, "Upload another list").await;
        choose(stage, &page, "again.csv", list.as_bytes()).await;
        page.until(&shows("again.csv: 4 rows, 4 columns, UTF-8")).await;
        assert_eq!(page.value("document.querySelector('td input').value").await, "plan");

        press(&page, "Next: rules").await;
        set(&page, "[name='schedule.windows']", "own").await;
        set(&page, "[name='schedule.windows[0].end']", "08:00").await;
        press(&page, "Next: check").await;
        page.until(&shows("This must be later than the start.")).await;
        for day in ["sat", "sun"] {
            page.click(&format!("[name='schedule.windows[0].days'][value={day}]"))
                .await;
        }
        set(&page, "[name='schedule.windows[0].start']", "00:00").await;
        set(&page, "[name='schedule.windows[0].end']", "00:00").await;
        set(&page, "[name='schedule.blackout_dates']", "2090-12-25\n2091-01-01").await;
        set(&page, "[name='pacing.calls_per_second']", "2.5").await;
        set(&page, "[name='retry.max_attempts']", "3").await;
        set(&page, "[name='retry.rules.busy']", "own").await;
        set(&page, "[name='retry.rules.busy.delays_minutes']", "5, 30").await;
        set(&page, "[name='caps.per_number_7d']", "").await;
        set(&page, "[name='caps.budget_cents']", "12.5").await;
        set(&page, "[name='voicemail.action']", "leave_message").await;
        set(&page, "[name='voicemail.message']", "Hello {{first_name}}.").await;
        pictures(&mut page, "new-campaign-rules").await;
        press(&page, "Next: check").await;
        page.until(&shows("2 of 2")).await;
        page.until("document.querySelectorAll('.forecast rect').length > 0")
            .await;
        pictures(&mut page, "new-campaign-check").await;
        let plan = stage.api.get(&path).await;
        let week = json!(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]);
        assert_eq!(
            plan["schedule"]["windows"],
            json!([{ "days": week, "start": "00:00", "end": "24:00" }])
        );
        assert_eq!(plan["schedule"]["blackout_dates"], json!(["2090-12-25", "2091-01-01"]));
        assert_eq!(plan["pacing"]["calls_per_second"], 2.5);
        assert_eq!(plan["retry"]["rules"]["busy"]["delays_minutes"], json!([5, 30]));
        assert_eq!(plan["caps"]["per_number_24h"], 3);
        assert_eq!(plan["caps"]["per_number_7d"], Value::Null);
        assert_eq!(plan["caps"]["budget_cents"], 1250);
        assert_eq!(plan["voicemail"]["message"], "Hello {{first_name}}.");

        press(&page, "Start").await;
        page.until(&shows(
            "It begins to call 2 contacts in the sandbox. No real phone rings.",
        ))
        .await;
        confirm(&page, "Start campaign").await;
        page.until(&shows("2 of 2")).await;
        stage
            .api
            .until(&path, |campaign| campaign["status"] == "completed")
            .await;

        press(&page, "Imports").await;
        page.until("document.querySelectorAll('tbody tr').length === 1").await;
        pictures(&mut page, "imports").await;
        page.click("tbody a").await;
        page.until(&shows("Mars/Olympus is not a time zone")).await;
        page.until(&shows("Has 5 cells, but the first row names 4 columns"))
            .await;
        pictures(&mut page, "import").await;
    });
}

#[test]
fn a_draft_is_kept_scheduled_and_changed_contact_by_contact() {
    on_stage(async |stage| {
        let mut page = stage.visit(ADMIN, "/t/acme/test/campaigns", DESKTOP).await;
        let id = begin(stage, &page, "Reminders").await;
        let path = format!("/v1/campaigns/{id}");
        // A list without names, with numbers only.
        choose(stage, &page, "numbers.txt", b"+15002340000\n+15002340010\n").await;
        page.until(&shows("numbers.txt: 2 rows, 1 column, UTF-8")).await;
        press(&page, "Import 2 rows").await;
        page.until(&shows("Finished: 2 rows were read.")).await;

        // What was written is kept without a button, and a reload goes on there.
        press(&page, "Agent or message").await;
        set(&page, "[name=name]", "Autumn reminders").await;
        page.until(&shows("Saved.")).await;
        page.reload().await;
        page.until(&shows("New campaign: Autumn reminders")).await;
        assert_eq!(
            page.value("document.querySelector('[name=channel]').disabled").await,
            true
        );
        press(&page, "Check and start").await;
        page.until(&shows("2 of 2")).await;
        page.click("[value=later]").await;
        set(&page, "[name='schedule.starts_at']", "2090-03-01T10:00").await;
        press(&page, "Schedule the start").await;
        confirm(&page, "Not yet").await;
        page.until(NO_DIALOG).await;
        assert_eq!(stage.api.get(&path).await["armed"], false);
        press(&page, "Schedule the start").await;
        confirm(&page, "Schedule the start").await;
        page.until(&shows("Starts by itself on")).await;
        assert_eq!(stage.api.get(&path).await["armed"], true);

        // Its rules can be changed: what is not touched stays.
        press(&page, "Change rules").await;
        set(&page, "dialog [name='pacing.calls_per_second']", "0.01").await;
        press(&page, "Save").await;
        page.until("document.querySelector('dialog [aria-invalid]') !== null")
            .await;
        set(&page, "dialog [name='pacing.calls_per_second']", "3").await;
        page.picture("console-change-rules").await;
        press(&page, "Save").await;
        page.until(NO_DIALOG).await;
        let plan = stage.api.get(&path).await;
        assert_eq!(plan["pacing"]["calls_per_second"], 3.0);
        assert_eq!(
            plan["schedule"]["starts_at"].as_str().unwrap().get(..7),
            Some("2090-03")
        );

        // One contact more, which is known already, and then is not.
        press(&page, "Add a contact").await;
        page.write("dialog [name=phone_number]", "(500) 234-0010").await;
        press(&page, "Add").await;
        page.until(&shows("This contact is in the campaign already.")).await;
        set(&page, "dialog [name=phone_number]", "(500) 234-0020").await;
        set(&page, "dialog [name=external_id]", "order-17").await;
        set(&page, "dialog [name=variables]", "plan = gold").await;
        press(&page, "Add").await;
        page.until(NO_DIALOG).await;
        page.until("document.querySelectorAll('tbody tr').length === 3").await;
        // By its number, however it is written, and by one's own id.
        page.write("[name=who]", "+1 500 234-0000").await;
        press_find(&page).await;
        page.until("document.querySelectorAll('tbody tr').length === 1").await;
        page.until(&shows("+15002340000")).await;
        set(&page, "[name=who]", "").await;
        page.write("[name=external_id]", "order-17").await;
        press_find(&page).await;
        page.until(&shows("+15002340020")).await;
        page.until("document.querySelectorAll('tbody tr').length === 1").await;
        pictures(&mut page, "contacts").await;
        press(&page, "Edit").await;
        set(&page, "dialog [name=first_name]", "Zoë").await;
        press(&page, "Save").await;
        page.until(NO_DIALOG).await;
        page.until(&shows("Zoë")).await;
        let found = stage.api.get(&format!("{path}/contacts?external_id=order-17")).await;
        assert_eq!(found["data"][0]["first_name"], "Zoë", "{found}");
        assert_eq!(found["data"][0]["variables"], json!({ "plan": "gold" }));
        press(&page, "Delete").await;
        confirm(&page, "Keep it").await;
        page.until(NO_DIALOG).await;
        press(&page, "Delete").await;
        confirm(&page, "Delete contact").await;
        page.until(&shows("No contact matches.")).await;
        assert_eq!(stage.api.get(&path).await["counts"]["total"], 2);

        // Canceled, and gone.
        press(&page, "Cancel campaign").await;
        confirm(&page, "Cancel campaign").await;
        page.until(&shows("It was canceled.")).await;
        press(&page, "Delete campaign").await;
        page.until(&shows("The campaign and its 2 contacts will be deleted."))
            .await;
        confirm(&page, "Delete campaign").await;
        page.until(&shows("No campaign yet.")).await;
        assert_eq!(stage.api.get(&path).await["error"]["code"], "not_found");
        is_well(&page).await;
    });
}

/// The frame has a button of this name, too.
async fn press_find(page: &Page) {
    page.click("main form[role=search] button").await;
}

/// Reads files as the page does, in its own module, and writes them as they would be sent.
const READ: &str = "
    const at = document.querySelector('script[src$=\"/main.js\"]').src.replace('main.js', 'pages/csv.js');
    const { look, pieces } = await import(at);
    const same = (name) => ({ name, write: (cell) => cell });
    const sent = async (file) => {
        const found = await look(file, '', () => {});
        const columns = found.first[0].cells.map(same);
        const all = [];
        for await (const piece of pieces(file, found, { hasHeader: true, columns }, () => {})) all.push(piece);
        return { found, all };
    };";

#[test]
fn lists_are_read_as_programs_write_them_and_sent_in_pieces_that_keep_their_lines() {
    on_stage(async |stage| {
        let page = stage.visit(ADMIN, "/t/acme/test/overview", DESKTOP).await;
        for (bytes, written) in [
            ("phone,name\n+1,Zoë\n".as_bytes().to_vec(), "phone,name\r\n+1,Zoë"),
            (
                b"\xef\xbb\xbfphone;name\r\n+1;\"a;\"\"b\"\"\"\r\n".to_vec(),
                "phone,name\r\n+1,\"a;\"\"b\"\"\"",
            ),
            (utf16("phone\tname\r\n+1\tZoë\r\n"), "phone,name\r\n+1,Zoë"),
            (b"phone,name\n+1,Zo\xeb\n".to_vec(), "phone,name\r\n+1,Zoë"),
            (b"sep=;\nphone;name\n+1;a,b\n".to_vec(), "phone,name\r\n\n+1,\"a,b\""),
            (b"phone,name\r+1,a\r+2,b\r".to_vec(), "phone,name\r\n+1,a\n+2,b"),
            // Rows of nothing are none; the next one keeps its line.
            (
                b"phone,name\n,\n\n+1,\"a\nb\"\n+2,c".to_vec(),
                "phone,name\r\n\n\n+1,\"a\nb\"\n+2,c",
            ),
        ] {
            let read = format!(
                "(async () => {{ {READ}
                    const {{ all }} = await sent(new File([new Uint8Array({})], 'x.csv'));
                    return all.length === 1 ? all[0].text() : all.length;
                }})()",
                json!(bytes)
            );
            assert_eq!(page.value(&read).await, written, "{}", String::from_utf8_lossy(&bytes));
        }
        for (bytes, said) in [
            (b"PK\x03\x04".to_vec(), "Excel workbook"),
            (b"phone\n\"+1\n".to_vec(), "Line 2: a cell begins with a quote"),
            (
                b"phone\n\"+1\"2\n".to_vec(),
                "Line 2: there is text after a closing quote",
            ),
            (b"\n,,\n".to_vec(), "The file is empty."),
            (b"p\x00h\x00o\x00\n\x00".to_vec(), "not a text file"),
        ] {
            let read = format!(
                "(async () => {{ {READ}
                    return sent(new File([new Uint8Array({})], 'x.csv')).then(() => 'read', (error) => error.message);
                }})()",
                json!(bytes)
            );
            let found = page.value(&read).await;
            assert!(found.as_str().unwrap().contains(said), "{found}");
        }
        // 150,000 rows: each on its own line in whichever piece it is.
        let read = format!(
            "(async () => {{ {READ}
                const count = 150_000;
                const row = (n) => `+1500${{2000000 + n}},\"Zoë, ${{n}}\",gold and silver`;
                const file = new File(['phone,name,plan\\n', ...Array.from({{ length: count }}, (_, n) => `${{row(n)}}\\n`)], 'x.csv');
                const {{ found, all }} = await sent(file);
                let [rows, wrong] = [0, 0];
                for (const piece of all) {{
                    const lines = (await piece.text()).split('\\n');
                    lines.forEach((line, at) => {{
                        if (at === 0 || !line) return;
                        rows += 1;
                        wrong += Number(line !== row(at - 1));
                    }});
                }}
                return {{ count: found.count, rows, wrong, pieces: all.length, most: Math.max(...all.map(({{ size }}) => size)) }};
            }})()"
        );
        let found = page.value(&read).await;
        assert_eq!(
            (&found["rows"], &found["wrong"]),
            (&json!(150_000), &json!(0)),
            "{found}"
        );
        assert_eq!(found["count"], 150_001);
        assert!(found["pieces"].as_u64().unwrap() > 1, "{found}");
        assert!(found["most"].as_u64().unwrap() <= 10 * 1024 * 1024, "{found}");
        is_well(&page).await;
    });
}
