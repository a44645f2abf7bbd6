//! The page of a room's link in a real browser, without a service behind it: what it says when there is no talk.
use crate::world::browser::{Browser, DESKTOP, Microphone, PHONE, Page, Screen};
use actix_web::{App, HttpResponse, HttpServer, http::StatusCode, web};
use callboard::dashboard::{self, room};
use serde_json::json;
use std::{
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

const AGENT: &str = "Ann <of> \"Northwind\"";

/// The real page and its files; the room itself refuses everybody.
struct Door {
    port: u16,
    /// Status and code with which it refuses.
    refusal: Arc<Mutex<(u16, &'static str)>>,
    viewed: Arc<AtomicUsize>,
    handle: actix_web::dev::ServerHandle,
}

impl Door {
    fn open(agent: &'static str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let refusal = Arc::new(Mutex::new((404, "not_found")));
        let viewed = Arc::new(AtomicUsize::new(0));
        let (refuses, views) = (refusal.clone(), viewed.clone());
        let server = HttpServer::new(move || {
            let (refuses, views) = (refuses.clone(), views.clone());
            let page = move || async move {
                let view = room::View {
                    recorded: true,
                    ice_servers: &[],
                };
                room::page(agent, &view)
            };
            let view = move || {
                views.fetch_add(1, SeqCst);
                async { HttpResponse::NoContent().finish() }
            };
            let whip = move || {
                let (status, code) = *refuses.lock().unwrap();
                async move {
                    let body = json!({ "error": { "code": code, "message": "no" } });
                    HttpResponse::build(StatusCode::from_u16(status).unwrap()).json(body)
                }
            };
            App::new()
                .route("/assets/{name}", web::get().to(dashboard::asset))
                .route("/r/gone", web::get().to(async || room::gone()))
                .route("/r/{id}", web::get().to(page))
                .route("/r/{id}/viewed", web::post().to(view))
                .route("/r/{id}/whip", web::post().to(whip))
        });
        let server = server.workers(1).disable_signals().listen(listener).unwrap().run();
        let handle = server.handle();
        actix_rt::spawn(server);
        Door {
            port,
            refusal,
            viewed,
            handle,
        }
    }

    fn link(&self) -> String {
        format!("http://127.0.0.1:{}/r/1?sig=abc", self.port)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}

/// Runs a test in a browser, if there is one.
fn in_a_browser(microphone: Microphone<'static>, agent: &'static str, test: impl AsyncFnOnce(Browser, Door)) {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    actix_rt::System::new().block_on(async {
        if let Some(browser) = Browser::start(microphone).await {
            // A test that waits for what never comes must fail, not hang.
            let limit = std::time::Duration::from_secs(300);
            let ended = tokio::time::timeout(limit, test(browser, Door::open(agent))).await;
            assert!(ended.is_ok(), "the test did not end within {limit:?}");
        }
    });
}

/// What it says stands in its window, and nothing of it sticks out at the side.
async fn assert_fits(page: &Page) {
    let width = page.value("[document.documentElement.scrollWidth, innerWidth]").await;
    assert!(width[0].as_u64() <= width[1].as_u64(), "sticks out: {width}");
}

async fn fails(page: &Page, failure: &str, words: &[&str], picture: &str) {
    page.state("failed").await;
    assert_eq!(page.value("document.body.dataset.failure").await, failure);
    let said = page.text("main").await;
    assert!(words.iter().all(|word| said.contains(word)), "{failure}: {said}");
    assert_eq!(
        page.value("document.activeElement.id").await,
        "over-title",
        "a reader begins there"
    );
    assert_fits(page).await;
    page.picture(picture).await;
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn each_refusal_is_said_in_plain_words() {
    in_a_browser(Microphone::Beeps, AGENT, async |browser, door| {
        for (screen, refusals) in [
            (
                PHONE,
                &[
                    (404, "not_found", "gone", "not valid any more", ""),
                    (409, "invalid_state", "occupied", "already in this talk", "Try again"),
                    (429, "concurrency_full", "full", "All lines are busy", ""),
                    (429, "rate_limited", "too_many_tries", "Too many tries", "Try again"),
                    (402, "insufficient_credits", "unavailable", "cannot take calls", ""),
                    (422, "validation_failed", "old_browser", "Update your browser", ""),
                    (503, "unavailable", "trouble", "wrong on our side", "Try again"),
                ][..],
            ),
            (
                DESKTOP,
                &[(409, "invalid_state", "occupied", "already in this talk", "Try again")],
            ),
        ] {
            for (status, code, failure, words, button) in refusals {
                *door.refusal.lock().unwrap() = (*status, code);
                let page = browser.open(screen).await;
                page.microphone(&door.link(), "granted").await;
                page.go(&door.link()).await;
                page.state("ready").await;
                assert!(page.text("main").await.contains("may be recorded"));
                assert!(page.text("h1").await.contains(AGENT), "as text");
                assert_fits(&page).await;
                page.picture("ready").await;
                page.click("#join").await;
                fails(&page, failure, &[words], failure).await;
                assert_eq!(page.text("#again").await, *button, "{failure}");
                page.close().await;
            }
        }
        // It can be tried again, and then it is another matter.
        let page = browser.open(PHONE.dark()).await;
        page.microphone(&door.link(), "denied").await;
        page.go(&door.link()).await;
        page.click("#join").await;
        fails(
            &page,
            "denied",
            &["microphone is blocked", "Allow the microphone there"],
            "denied",
        )
        .await;
        page.microphone(&door.link(), "granted").await;
        page.click("#again").await;
        page.until("document.body.dataset.failure === 'occupied'").await;
        // Nobody is there to answer at all.
        page.offline(true).await;
        page.click("#again").await;
        page.until("document.body.dataset.failure === 'network'").await;
        fails(
            &page,
            "network",
            &["cannot be reached", "Check that you are online"],
            "network",
        )
        .await;
    });
}

#[test]
fn a_page_that_cannot_listen_says_why() {
    in_a_browser(Microphone::Missing, AGENT, async |browser, door| {
        let page = browser.open(PHONE).await;
        page.microphone(&door.link(), "granted").await;
        page.go(&door.link()).await;
        page.click("#join").await;
        fails(
            &page,
            "no_microphone",
            &["No microphone was found", "Plug in"],
            "no-microphone",
        )
        .await;
        let page = browser.open(PHONE).await;
        page.go(&format!("http://room.example:{}/r/1?sig=abc", door.port)).await;
        fails(&page, "insecure", &["not safe for a talk", "https://"], "insecure").await;
        let page = browser.open(PHONE).await;
        page.go(&format!("http://127.0.0.1:{}/r/gone", door.port)).await;
        assert!(page.text("main").await.contains("This link is not valid"));
        assert_fits(&page).await;
        page.picture("link-not-valid").await;
        assert_eq!(page.complaints(), Vec::<String>::new());
        let page = browser.open(PHONE).await;
        page.before_each_load("delete window.RTCPeerConnection").await;
        page.go(&door.link()).await;
        fails(&page, "old_browser", &["cannot hold a talk"], "old-browser").await;
    });
}

#[test]
fn the_microphone_is_asked_for_after_join_and_the_keyboard_suffices() {
    in_a_browser(Microphone::Beeps, AGENT, async |browser, door| {
        let page = browser.open(DESKTOP.dark()).await;
        page.microphone(&door.link(), "prompt").await;
        page.before_each_load(
            "window.asked = 0; navigator.mediaDevices.getUserMedia = () => { window.asked += 1; return new Promise(() => {}); };",
        )
        .await;
        page.go(&door.link()).await;
        page.state("ready").await;
        assert_eq!(page.value("window.asked").await, 0, "before Join nothing is asked for");
        page.key("Tab").await;
        assert_eq!(page.value("document.activeElement.id").await, "join");
        assert_eq!(
            page.value("document.activeElement.matches(':focus-visible')").await,
            true
        );
        page.key("Enter").await;
        page.state("asking").await;
        assert_eq!(page.value("window.asked").await, 1);
        assert!(page.text("main").await.contains("Choose Allow"));
        page.picture("asking").await;
        page.key("Tab").await;
        assert_eq!(page.value("document.activeElement.id").await, "cancel");
        page.key("Space").await;
        page.state("ready").await;
        assert_eq!(page.value("document.activeElement.id").await, "join");
        assert_eq!(page.complaints(), Vec::<String>::new());
    });
}

#[test]
fn a_visit_is_told_once_per_tab() {
    in_a_browser(Microphone::Beeps, AGENT, async |browser, door| {
        let page = browser.open(PHONE).await;
        page.go(&door.link()).await;
        page.until("Object.keys(sessionStorage).some((key) => sessionStorage[key].includes('viewed'))")
            .await;
        assert_eq!(door.viewed.load(SeqCst), 1);
        page.reload().await;
        page.state("ready").await;
        page.reload().await;
        page.state("ready").await;
        assert_eq!(door.viewed.load(SeqCst), 1, "a reload is no second visit");
        // What the browser sends along names nobody's link.
        assert_eq!(page.value("document.referrer").await, "");
        let kept = page.value("JSON.stringify(Object.entries(sessionStorage))").await;
        assert!(
            !kept.as_str().unwrap().contains("abc"),
            "the signature stays in the address: {kept}"
        );
    });
}

/// A name as long as they get, without a place to break it.
const LONG: &str = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaftsvorsitzende";

#[test]
fn it_fits_every_screen() {
    in_a_browser(Microphone::Beeps, LONG, async |browser, door| {
        const SMALL: Screen = PHONE.sized("small", 320, 568);
        const SIDE: Screen = PHONE.sized("side", 740, 360);
        for screen in [SMALL, SMALL.dark(), SIDE, PHONE, DESKTOP, DESKTOP.dark()] {
            let page = browser.open(screen).await;
            page.go(&door.link()).await;
            page.state("ready").await;
            assert_fits(&page).await;
            page.picture(if screen == screen.dark() { "long-dark" } else { "long" })
                .await;
            page.microphone(&door.link(), "granted").await;
            page.click("#join").await;
            page.state("failed").await;
            assert_fits(&page).await;
            page.close().await;
        }
    });
}
