//! What users do with campaigns and contacts: change, import, retry, delete, duplicate, look ahead and report.
use crate::{
    on_both,
    world::{Tenant, World, minutes, seconds},
};
use serde_json::{Value, json};

async fn draft(tenant: &Tenant, more: Value) -> String {
    let mut draft = json!({ "name": "Draft", "agent_id": tenant.agent().await, "pacing": { "calls_per_second": 50 } });
    for (name, value) in more.as_object().unwrap() {
        draft[name] = value.clone();
    }
    tenant.api.post("/v1/campaigns", draft).await.ok()["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

on_both! {
    async fn a_csv_file_becomes_contacts(world: &mut World) {
        let tenant = world.tenant().await;
        let id = draft(&tenant, json!({})).await;
        let path = format!("/v1/campaigns/{id}");
        let file = "\u{feff}Phone Number,First Name,timezone,priority,plan,note\r\n\
            (500) 234-0000,Ann,America/Chicago,5,gold,\"two\nlines\"\r\n\
            500-234-0000,Twice,,,,\r\n\
            +15002340001,Bob,Nowhere/Land,,,\r\n\
            ,Nobody,,,,\r\n\
            +15002340011,Cid,,high,,\r\n\
            12,No Number,,,,\r\n\
            +15002340021,Eve,,,,,,extra\r\n\
            +15002340031,Dan,,,silver,\r\n";
        let job = tenant.api.upload(&format!("{path}/contacts/import"), file).await;
        assert_eq!((job.status.as_u16(), &job.body["status"]), (202, &json!("running")));
        world.settle().await;
        let done = tenant.api.get(&format!("/v1/imports/{}", job.body["id"].as_str().unwrap())).await.ok();
        let counts = ["status", "rows", "accepted", "duplicates", "rejected", "progress"].map(|name| done[name].clone());
        assert_eq!(counts, [json!("completed"), json!(8), json!(3), json!(1), json!(4), json!(1.0)]);
        let refused: Vec<_> = done["rejections"].as_array().unwrap().iter().map(|row| (row["line"].as_i64().unwrap(), row["param"].as_str().unwrap_or("").to_owned())).collect();
        let expected = [(5, "timezone"), (6, "phone_number"), (7, "priority"), (9, "")].map(|(line, param)| (line, param.to_owned()));
        assert_eq!(refused, expected);
        let page = tenant.api.get(&format!("{path}/contacts?order=asc")).await.ok();
        let ann = &page["data"][0];
        assert_eq!((&ann["phone_number"], &ann["timezone"], &ann["priority"]), (&json!("+15002340000"), &json!("America/Chicago"), &json!(5)));
        assert_eq!(ann["variables"], json!({ "plan": "gold", "note": "two\nlines" }));

        for (wrong, status) in [("", 422), ("name\nAnn\n", 422), ("phone_number,phone_number\n1,2\n", 422)] {
            assert_eq!(tenant.api.upload(&format!("{path}/contacts/import"), wrong).await.status.as_u16(), status, "{wrong}");
        }
        assert_eq!(tenant.api.post(&format!("{path}/contacts/import"), json!({})).await.error().0, 415);
    }

    async fn lists_as_other_programs_write_them(world: &mut World) {
        let tenant = world.tenant().await;
        let id = draft(&tenant, json!({})).await;
        let path = format!("/v1/campaigns/{id}/contacts/import");
        let import = async |world: &World, file: String| {
            let job = tenant.api.upload(&path, file).await.ok();
            world.settle().await;
            tenant.api.get(&format!("/v1/imports/{}", job["id"].as_str().unwrap())).await.ok()
        };
        for (n, (file, delimiter)) in [
            ("phone_number;note\n+1500234#000;\"a;b\"\n+1500234#001;c, d\n", "semicolon"),
            ("note\tPhone Number\n\"a;b\"\t+1500234#000\nc, d\t+1500234#001\n", "tab"),
            ("phone_number,note\n+1500234#000,a;b\n+1500234#001,\"c, d\"\n", "comma"),
        ].into_iter().enumerate() {
            let done = import(world, file.replace('#', &n.to_string())).await;
            assert_eq!((&done["delimiter"], &done["accepted"]), (&json!(delimiter), &json!(2)), "{done}");
        }
        let page = tenant.api.get(&format!("/v1/campaigns/{id}/contacts?order=asc")).await.ok();
        let notes: Vec<_> = page["data"].as_array().unwrap().iter().map(|row| row["variables"]["note"].as_str().unwrap()).collect();
        assert_eq!(notes, ["a;b", "c, d", "a;b", "c, d", "a;b", "c, d"]);

        // Two people of one house: none is merged into the other, and none is called at the door.
        let done = import(world, "phone_number\n+1 415 555 2671\n+1 415 555 2671 ext. 5\n+1 415 555 2671 ext. 6\n".into()).await;
        assert_eq!((&done["accepted"], &done["duplicates"]), (&json!(3), &json!(0)), "{done}");
    }

    async fn a_file_that_cannot_be_told_apart_changes_nothing(world: &mut World) {
        let tenant = world.tenant().await;
        let id = draft(&tenant, json!({})).await;
        let rows: String = (0..90).map(|n| format!("+15002{n:06},Ann\n")).collect();
        let swallowed = format!("phone_number,note\n+15002340000,\"Bob\n{rows}");
        let long = format!("phone_number,{}\n+15002340000,x\n", "n".repeat(41));
        let many = format!("phone_number,{}\n+15002340000\n", (0..51).map(|n| format!("v{n}")).collect::<Vec<_>>().join(","));
        for (file, said) in [(swallowed, "line 2:"), (long, "more than 40 characters"), (many, "at most 50")] {
            let refused = tenant.api.upload(&format!("/v1/campaigns/{id}/contacts/import"), file).await;
            assert_eq!(refused.error().0, 422);
            let message = refused.body["error"]["message"].as_str().unwrap();
            assert!(message.contains(said), "{message}");
        }
        assert_eq!((world.rows("contacts").await, world.rows("imports").await), (0, 0));
    }

    /// A crash between two slices costs and doubles nothing.
    async fn an_import_goes_on_after_a_crash(world: &mut World) {
        let tenant = world.tenant().await;
        let id = draft(&tenant, json!({})).await;
        let mut file = String::from("phone_number\n");
        for n in 0..4_500 {
            file += &format!("+15002{n:06}\n");
        }
        let job = tenant.api.upload(&format!("/v1/campaigns/{id}/contacts/import"), file.clone()).await.ok();
        // Two of the same file at once: each number is added once.
        let twin = tenant.api.upload(&format!("/v1/campaigns/{id}/contacts/import"), file).await.ok();
        world.restart().await;
        world.advance(minutes(1)).await;
        let (mut accepted, mut duplicates) = (0, 0);
        for job in [job, twin] {
            let done = tenant.api.get(&format!("/v1/imports/{}", job["id"].as_str().unwrap())).await.ok();
            assert_eq!((&done["status"], &done["rows"]), (&json!("completed"), &json!(4500)));
            accepted += done["accepted"].as_i64().unwrap();
            duplicates += done["duplicates"].as_i64().unwrap();
        }
        assert_eq!((accepted, duplicates), (4500, 4500));
        assert_eq!(tenant.campaign(&id).await["counts"]["pending"], 4500);
        assert_eq!((world.rows("contacts").await, world.rows("import_bodies").await), (4500, 0));
    }

    async fn the_do_not_call_list_is_imported(world: &mut World) {
        let tenant = world.tenant().await;
        let file = "phone_number,email,channels,reason\n(500) 234-0000,,phone,asked\n+15002340000,,,\n,Ann@Example.com,,\n12,,,\n,,,\n+15002340001,,fax,\n";
        let job = tenant.api.upload("/v1/dnc/import", file).await.ok();
        world.settle().await;
        let done = tenant.api.get(&format!("/v1/imports/{}", job["id"].as_str().unwrap())).await.ok();
        assert_eq!((&done["accepted"], &done["duplicates"], &done["rejected"]), (&json!(2), &json!(1), &json!(3)), "{done}");
        let entry = tenant.api.get("/v1/dnc/check?email=ann@example.com").await.ok();
        assert_eq!((&entry["listed"], &entry["entry"]["source"], &entry["entry"]["channels"]), (&json!(true), &json!("import"), &json!(["email"])));
        assert_eq!(tenant.api.upload("/v1/dnc/import", "phone_number,color\n1,red\n").await.error().0, 422);
        // Somebody's number and address in one row are two entries, each with its channels; an extension is its line's.
        let both = "phone_number;email;channels\n+1 500 234 0020;eve@example.com;\n+1 500 234 0030;dan@example.com;sms,email\n\
            +1 500 234 0040;cid@example.com;phone\n+1 500 234 0050 ext. 7;;\n";
        let job = tenant.api.upload("/v1/dnc/import", both).await.ok();
        world.settle().await;
        let done = tenant.api.get(&format!("/v1/imports/{}", job["id"].as_str().unwrap())).await.ok();
        assert_eq!((&done["rows"], &done["accepted"], &done["rejected"]), (&json!(4), &json!(6), &json!(0)), "{done}");
        for (whom, channels) in [
            ("phone_number=%2B15002340020", json!(["phone", "sms"])),
            ("email=eve@example.com", json!(["email"])),
            ("phone_number=%2B15002340030", json!(["sms"])),
            ("email=dan@example.com", json!(["email"])),
            ("phone_number=%2B15002340040", json!(["phone"])),
            ("email=cid@example.com", json!(null)),
            ("phone_number=%2B15002340050", json!(["phone", "sms"])),
        ] {
            let entry = tenant.api.get(&format!("/v1/dnc/check?{whom}")).await.ok();
            assert_eq!(entry["entry"]["channels"], channels, "{whom}");
        }
        // Rows of one number add up, and columns without a name are passed over.
        tenant.api.upload("/v1/dnc/import", "phone_number,channels,,\n+15002340010,sms,,\n+15002340010,phone,,\n").await.ok();
        world.settle().await;
        let entry = tenant.api.get("/v1/dnc/check?phone_number=%2B15002340010").await.ok();
        assert_eq!(entry["entry"]["channels"], json!(["phone", "sms"]));
    }

    async fn rules_can_change_and_who_calls_cannot(world: &mut World) {
        let tenant = world.tenant().await;
        let id = draft(&tenant, json!({ "caps": { "per_number_24h": 2 } })).await;
        let path = format!("/v1/campaigns/{id}");
        let change = async |patch: Value| tenant.api.patch(&path, patch).await;
        let changed = change(json!({ "name": "Other", "caps": { "per_number_7d": null }, "voice_id": "builtin:tones" })).await.ok();
        assert_eq!((&changed["name"], &changed["caps"]["per_number_24h"], &changed["caps"]["per_number_7d"]), (&json!("Other"), &json!(2), &Value::Null));
        assert_eq!(change(json!({ "caps": null })).await.ok()["caps"]["per_number_7d"], 7, "a group goes back to its defaults");
        tenant.api.post(&format!("{path}/contacts"), json!({ "contacts": [{ "phone_number": "+15002340002" }] })).await.ok();
        tenant.api.post(&format!("{path}/start"), json!({})).await.ok();
        assert_eq!(change(json!({ "voice_id": null })).await.error(), (422, "validation_failed", Some("voice_id")));
        assert_eq!(change(json!({ "pacing": { "weight": 50 } })).await.ok()["pacing"]["weight"], 50);
        assert_eq!(change(json!({ "pacing": { "weight": null } })).await.ok()["pacing"]["weight"], 10, "a value goes back to its default");
        let agent = changed["agent_id"].as_str().unwrap();
        assert_eq!(tenant.api.delete(&format!("/v1/agents/{agent}")).await.status, 204);
        assert_eq!(change(json!({ "name": "Third" })).await.ok()["name"], "Third", "it keeps its agent as it was");
        for (wrong, param) in [
            (json!({ "pacing": { "weight": 0 } }), "pacing.weight"),
            (json!({ "pacing": { "speed": 1 } }), "pacing.speed"),
            (json!({ "schedule": { "windows": [{ "start": "20:00", "end": "09:00" }] } }), "schedule.windows[0]"),
            (json!({ "schedule": { "windows": [{ "start": "25:00", "end": "26:00" }] } }), "schedule.windows[0].start"),
            (json!({ "schedule": { "windows": [] } }), "schedule.windows"),
            (json!({ "schedule": { "timezone": "Mars/Olympus" } }), "schedule.timezone"),
            (json!({ "schedule": { "starts_at": "2027-03-03T00:00:00Z", "ends_at": "2027-03-02T00:00:00Z" } }), "schedule.ends_at"),
            (json!({ "name": null }), "name"),
        ] {
            let error = change(wrong.clone()).await;
            assert_eq!((error.error().0, error.error().2), (422, Some(param)), "{wrong} {}", error.body);
        }
        assert_eq!(tenant.api.delete(&path).await.error().1, "invalid_state");
        world.advance(minutes(1)).await;
        assert_eq!(change(json!({ "name": "Late" })).await.error().1, "invalid_state", "it is over");
        assert_eq!(tenant.api.delete(&path).await.status, 204);
        assert_eq!(tenant.api.get(&path).await.error().0, 404);
        world.advance(minutes(2)).await;
        assert_eq!(world.rows("contacts").await, 0, "nothing is left behind");
    }

    async fn a_contact_is_changed_removed_and_called_once_more(world: &mut World) {
        let tenant = world.tenant().await;
        let id = draft(&tenant, json!({ "retry": { "min_gap_minutes": 10 } })).await;
        let path = format!("/v1/campaigns/{id}");
        let given = ["+15002340001", "+15002340011", "+15002340021"].map(|number| json!({ "phone_number": number }));
        tenant.api.post(&format!("{path}/contacts"), json!({ "contacts": given })).await.ok();
        let list = tenant.api.get(&format!("{path}/contacts?order=asc")).await.ok();
        let of = |n: usize| format!("{path}/contacts/{}", list["data"][n]["id"].as_str().unwrap());
        let changed = tenant.api.patch(&of(0), json!({ "phone_number": "(500) 234-0000", "first_name": "Ann", "timezone": "Europe/Berlin", "variables": { "a": 1 } })).await.ok();
        assert_eq!((&changed["phone_number"], &changed["first_name"], &changed["timezone"]), (&json!("+15002340000"), &json!("Ann"), &json!("Europe/Berlin")));
        assert_eq!(tenant.api.patch(&of(0), json!({ "phone_number": "+15002340011" })).await.error(), (409, "already_exists", Some("phone_number")));
        assert_eq!(tenant.api.delete(&of(2)).await.status, 204);
        assert_eq!(tenant.campaign(&id).await["counts"]["total"], 2);
        let list = tenant.api.post(&format!("{path}/contacts"), json!({ "contacts": [["+15002340031"]] })).await.ok();
        assert_eq!((&list["accepted"], &list["rejected"][0]["code"]), (&json!(0), &json!("validation_failed")), "a list is no contact");
        assert_eq!(tenant.api.post(&format!("{}/retry", of(1)), json!({})).await.error().1, "invalid_state", "it waits for its first call");

        tenant.api.post(&format!("{path}/start"), json!({})).await.ok();
        world.advance(seconds(5)).await;
        let failed = tenant.api.get(&of(1)).await.ok();
        assert_eq!((&failed["status"], &failed["attempts"]), (&json!("failed"), &json!(1)));
        assert_eq!(tenant.api.patch(&of(1), json!({ "first_name": "Bob" })).await.error().1, "invalid_state");
        let again = tenant.api.post(&format!("{}/retry", of(1)), json!({})).await.ok();
        assert_eq!(again["status"], "waiting");
        assert!(again["next_attempt_at"].as_str().unwrap() >= "2027-03-02T13:10:00", "the gap holds: {again}");
        world.advance(minutes(11)).await;
        let failed = tenant.api.get(&of(1)).await.ok();
        assert_eq!((&failed["status"], &failed["attempts"]), (&json!("failed"), &json!(2)));
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        assert_eq!(tenant.api.post(&format!("{}/retry", of(1)), json!({})).await.error().1, "invalid_state", "the campaign is over");
        let dispatched = tenant.event_types().await.into_iter().filter(|name| name == "campaign.contact_dispatched").count();
        assert_eq!(dispatched, 3);
    }

    /// A removed contact is not brought back by a dial that was being prepared, and the campaign still ends.
    async fn who_is_removed_while_it_runs_stays_away(world: &mut World) {
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002340000", "+15002340010", "+15002340020"], json!({ "pacing": { "calls_per_second": 50, "max_concurrency": 1 } })).await;
        world.advance(seconds(1)).await;
        let list = tenant.api.get(&format!("/v1/campaigns/{id}/contacts?order=asc")).await.ok();
        for n in [1, 2] {
            let path = format!("/v1/campaigns/{id}/contacts/{}", list["data"][n]["id"].as_str().unwrap());
            assert_eq!(tenant.api.delete(&path).await.status, 204);
        }
        world.advance(minutes(2)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["counts"]["total"]), (&json!("completed"), &json!(1)));
    }

    async fn a_preflight_says_what_will_happen(world: &mut World) {
        let tenant = world.tenant().await;
        let id = draft(&tenant, json!({ "schedule": { "windows": [{ "start": "09:00", "end": "20:00" }] }, "pacing": { "calls_per_second": 1 } })).await;
        let path = format!("/v1/campaigns/{id}");
        let empty = tenant.api.post(&format!("{path}/preflight"), json!({})).await.ok();
        assert_eq!((&empty["ready"], &empty["problems"][0]["code"]), (&json!(false), &json!("no_contacts")));
        tenant.api.post("/v1/dnc", json!({ "phone_number": "+15002340010" })).await.ok();
        let given = json!([
            { "phone_number": "+15002340000", "timezone": "Europe/Berlin" }, { "phone_number": "+15002340010", "timezone": "Europe/Berlin" },
            { "phone_number": "+15002340020" }, { "phone_number": "12" }, { "phone_number": "+12125550123" },
        ]);
        tenant.api.post(&format!("{path}/contacts"), json!({ "contacts": given })).await.ok();
        let look = tenant.api.post(&format!("{path}/preflight"), json!({})).await.ok();
        assert_eq!((&look["ready"], &look["contacts"], &look["eligible"]), (&json!(true), &json!(5), &json!(2)));
        assert_eq!(look["skips"], json!({ "invalid": 2, "dnc_blocked": 1, "daily_cap_reached": 0, "quiet_hours_expired": 0 }));
        let zones: Vec<_> = look["zones"].as_array().unwrap().iter().map(|zone| (zone["timezones"].clone(), zone["contacts"].as_i64().unwrap(), zone["open_now"].as_bool().unwrap())).collect();
        assert!(zones.contains(&(json!(["Europe/Berlin"]), 2, true)) && zones.contains(&(json!(["America/New_York"]), 1, false)), "{zones:?}");
        let finish = look["expected_finish_at"].as_str().unwrap();
        assert!(finish.starts_with("2027-03-02T14:00"), "the last ones wake up at 14:00: {finish}");

        let contact = tenant.api.get(&format!("{path}/contacts?order=asc")).await.ok()["data"][2]["id"].as_str().unwrap().to_owned();
        let verdict = tenant.api.get(&format!("{path}/contacts/{contact}/eligibility")).await.ok();
        assert_eq!((&verdict["eligible"], &verdict["next_opening_at"]), (&json!(false), &json!("2027-03-02T14:00:00.000Z")));
        assert_eq!(verdict["zones"], json!([{ "timezone": "America/New_York", "local_time": "2027-03-02T08:00:00-05:00" }]));
        assert_eq!(verdict["rules"].as_array().unwrap().len(), 14);
        assert_eq!(verdict["law_binding"], false, "in the sandbox the law is told");
        let told = verdict["law"].as_array().unwrap();
        assert!(!told.is_empty() && told.iter().all(|asked| asked["title"] != "" && asked["verdict"].is_string()), "{told:?}");
    }

    async fn a_copy_has_the_settings_and_no_contacts(world: &mut World) {
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002340001"], json!({ "name": "Spring", "caps": { "per_number_24h": 1 }, "consent_basis": "customers" })).await;
        world.advance(minutes(1)).await;
        let copy = tenant.api.post(&format!("/v1/campaigns/{id}/duplicate"), json!({})).await;
        assert_eq!(copy.status, 201);
        let copy = copy.body;
        assert_eq!((&copy["name"], &copy["status"], &copy["counts"]["total"]), (&json!("Spring (copy)"), &json!("draft"), &json!(0)));
        assert_eq!((&copy["caps"]["per_number_24h"], &copy["consent_basis"]), (&json!(1), &json!("customers")));
        let named = tenant.api.post(&format!("/v1/campaigns/{id}/duplicate"), json!({ "name": "Summer" })).await.ok();
        assert_eq!(named["name"], "Summer");
    }

    async fn statistics_and_the_report_tell_what_happened(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let campaign = json!({ "name": "Told", "agent_id": agent, "pacing": { "calls_per_second": 50 }, "contacts": [
            { "phone_number": "+15002340000", "first_name": "=cmd()", "external_id": "a,\"b" }, { "phone_number": "+15002340001" }, { "phone_number": "12" },
        ] });
        let id = tenant.api.post("/v1/campaigns/run", campaign).await.ok()["id"].as_str().unwrap().to_owned();
        world.advance(minutes(3)).await;
        let stats = tenant.api.get(&format!("/v1/campaigns/{id}/stats")).await.ok();
        assert_eq!((&stats["counts"]["completed"], &stats["answer_rate"], &stats["limiting_factor"]), (&json!(1), &json!(0.5), &Value::Null));
        assert_eq!(stats["hours"], json!([{ "hour": "2027-03-02T13:00:00.000Z", "started": 2, "answered": 1, "ended": 2, "answer_rate": 0.5, "answered_live": 1, "abandoned": 0 }]));
        assert_eq!(stats["slots"], json!({ "in_use": 0, "limit": 20 }));
        let report = tenant.api.get(&format!("/v1/campaigns/{id}/report.csv")).await;
        assert_eq!(report.headers["content-type"], "text/csv; charset=utf-8");
        let text = report.body.as_str().unwrap().to_owned();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[0].starts_with(r#""contact_id","external_id","phone_number","email","#));
        assert!(lines[1].contains(r#","a,""b","+15002340000","","'=cmd()","#) && lines[1].contains(r#","completed","#), "{}", lines[1]);
        assert!(lines[2].contains(r#","failed","","","1","#) && lines[2].contains(r#","busy","busy","#), "{}", lines[2]);
        assert!(lines[3].contains(r#","12","#) && lines[3].contains(r#","skipped","invalid","","0","#), "{}", lines[3]);
    }

    /// A call for later is placed then; one that is made while the queue is full is refused by name.
    async fn a_call_can_be_scheduled(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let call = |at: &str| json!({ "to_number": "+15002340000", "agent_id": agent, "scheduled_at": at });
        let session = tenant.api.post("/v1/sessions", call("2027-03-02T14:00:00Z")).await.ok();
        assert_eq!((&session["phase"], &session["status"]), (&json!("scheduled"), &json!("queued")));
        let ended = tenant.api.post("/v1/sessions", call("2027-03-02T14:00:00Z")).await.ok();
        tenant.api.post(&format!("/v1/sessions/{}/end", ended["id"].as_str().unwrap()), json!({})).await.ok();
        world.restart().await;
        world.advance(minutes(59)).await;
        let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
        assert_eq!(tenant.api.get(&path).await.ok()["phase"], "scheduled");
        world.advance(minutes(3)).await;
        assert_eq!(tenant.api.get(&path).await.ok()["status"], "completed");
        assert_eq!(tenant.api.post("/v1/sessions", call("2027-09-02T14:00:00Z")).await.error(), (422, "validation_failed", Some("scheduled_at")));
    }
}
