//! One tab: what a person does with it, and what is to be seen in it.
use super::link::Link;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::path::Path;

/// Milliseconds that a page may take until what a test waits for is so, on a slow machine with many tests at once.
const LIMIT_MS: u32 = 90_000;

/// So often a click may miss what moves.
const TRIES: usize = 20;

/// What the page is looked at with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Screen {
    pub name: &'static str,
    width: u32,
    height: u32,
    mobile: bool,
    dark: bool,
}

pub const PHONE: Screen = Screen {
    name: "phone",
    width: 360,
    height: 740,
    mobile: true,
    dark: false,
};
pub const DESKTOP: Screen = Screen {
    name: "desktop",
    width: 1280,
    height: 800,
    mobile: false,
    dark: false,
};

impl Screen {
    pub const fn dark(self) -> Self {
        Screen { dark: true, ..self }
    }

    pub const fn sized(self, name: &'static str, width: u32, height: u32) -> Self {
        Screen {
            name,
            width,
            height,
            ..self
        }
    }
}

pub struct Page {
    link: Link,
    context: String,
    target: String,
    /// The protocol's name for our hold of the tab.
    tab: String,
    screen: Screen,
}

/// Keeps the page's connections where tests find them. The page itself leaves nothing behind.
const KEEP_CONNECTIONS: &str = "{
    const Real = window.RTCPeerConnection;
    window.connections = [];
    if (Real) window.RTCPeerConnection = class extends Real {
        constructor(...options) { super(...options); window.connections.push(this); }
    };
}";

impl Page {
    pub(super) async fn open(link: &Link, context: &str, screen: Screen) -> Self {
        // A window of its own: a tab that another one covers is one that nobody looks at.
        let target = json!({ "url": "about:blank", "browserContextId": context, "newWindow": true });
        let target = link.send(None, "Target.createTarget", target).await["targetId"].clone();
        let attach = json!({ "targetId": target, "flatten": true });
        let tab = link.send(None, "Target.attachToTarget", attach).await["sessionId"].clone();
        let mut page = Page {
            link: link.clone(),
            context: context.to_owned(),
            target: target.as_str().unwrap().to_owned(),
            tab: tab.as_str().unwrap().to_owned(),
            screen,
        };
        link.watch(&page.tab);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Inspector.enable"] {
            page.send(domain, json!({})).await;
        }
        page.screen(screen).await;
        page.before_each_load(KEEP_CONNECTIONS).await;
        page
    }

    /// Looks at it on another screen.
    pub async fn screen(&mut self, screen: Screen) {
        self.screen = screen;
        let Screen {
            width,
            height,
            mobile,
            dark,
            ..
        } = screen;
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": if mobile { 2 } else { 1 }, "mobile": mobile });
        self.send("Emulation.setDeviceMetricsOverride", metrics).await;
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.send("Emulation.setEmulatedMedia", media).await;
    }

    /// Of the screen, in the page's pixels.
    pub fn width(&self) -> u32 {
        self.screen.width
    }

    /// Another tab of the same browser, with the same permissions.
    pub async fn second_tab(&self) -> Self {
        Page::open(&self.link, &self.context, self.screen).await
    }

    async fn send(&self, method: &str, params: Value) -> Value {
        self.link.send(Some(&self.tab), method, params).await
    }

    /// A script that runs in every page before its own.
    pub async fn before_each_load(&self, script: &str) {
        self.send("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script }))
            .await;
    }

    /// What a person answers when the browser asks for the microphone: `granted`, `denied`, or `prompt`: nothing yet.
    pub async fn microphone(&self, url: &str, setting: &str) {
        let origin = url::Url::parse(url).unwrap().origin().ascii_serialization();
        let params = json!({ "permission": { "name": "microphone" }, "setting": setting, "origin": origin, "browserContextId": self.context });
        self.link.send(None, "Browser.setPermission", params).await;
    }

    /// Cuts the page's requests off, and lets them through again. Sound that flows goes on flowing.
    pub async fn offline(&self, offline: bool) {
        self.send("Network.enable", json!({})).await;
        let params = json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.send("Network.emulateNetworkConditions", params).await;
    }

    pub async fn go(&self, url: &str) {
        self.loads(1, self.load("Page.navigate", json!({ "url": url }))).await;
    }

    /// To a page that leads to another one by itself.
    pub async fn go_on(&self, url: &str) {
        self.loads(2, self.load("Page.navigate", json!({ "url": url }))).await;
    }

    pub async fn reload(&self) {
        self.loads(1, self.load("Page.reload", json!({}))).await;
    }

    /// Presses what leads to another page.
    pub async fn leave_by(&self, selector: &str) {
        self.loads(1, self.click(selector)).await;
    }

    async fn load(&self, method: &str, params: Value) {
        let answer = self.send(method, params).await;
        assert!(answer["errorText"].is_null(), "{method}: {answer}");
    }

    /// Does it, and waits until so many pages were loaded by that.
    async fn loads(&self, pages: usize, act: impl Future<Output = ()>) {
        let mut loads = self.link.loads(&self.tab);
        let before = *loads.borrow_and_update();
        act.await;
        let limit = std::time::Duration::from_millis(LIMIT_MS.into());
        let loaded = tokio::time::timeout(limit, loads.wait_for(|loads| *loads >= before + pages)).await;
        assert!(loaded.is_ok_and(|loaded| loaded.is_ok()), "nothing was loaded");
    }

    /// The value of an expression; of a promise: what it comes to.
    pub async fn value(&self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.send("Runtime.evaluate", params).await;
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    pub async fn text(&self, selector: &str) -> String {
        let text = self
            .value(&format!("document.querySelector({})?.innerText", json!(selector)))
            .await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the expression, which may be a promise, is true; the page looks again after each change of its own.
    /// Fails with what is to be seen instead.
    pub async fn until(&self, expression: &str) {
        let script = format!(
            "new Promise((done) => {{
                const finish = (late) => {{
                    clearTimeout(timer); clearInterval(again); changes.disconnect();
                    done(late && `${{JSON.stringify(document.body?.dataset)}} ${{document.body?.innerText}}`);
                }};
                const look = async () => {{ try {{ if (await ({expression})) finish(false); }} catch {{ /* not yet */ }} }};
                const changes = new MutationObserver(look);
                changes.observe(document, {{ attributes: true, characterData: true, childList: true, subtree: true }});
                const again = setInterval(look, 100);
                const timer = setTimeout(finish, {LIMIT_MS}, true);
                look();
            }})"
        );
        let late = self.value(&script).await;
        assert!(
            late == false,
            "never came to be: {expression}; the page: {late}; {:?}",
            self.complaints()
        );
    }

    /// Waits for a `data-state` of the room's page.
    pub async fn state(&self, state: &str) {
        let stands = format!("document.body.dataset.state === {0}", json!(state));
        // What cannot change any more is told at once.
        let over = "['failed', 'ended'].includes(document.body.dataset.state)";
        self.until(&format!("{stands} || {over}")).await;
        let seen = self
            .value("`${document.body.dataset.state} ${document.body.dataset.failure ?? ''}`")
            .await;
        assert!(
            seen.as_str().unwrap().starts_with(state),
            "waited for {state}, but it is {seen}: {}; {:?}",
            self.text("body").await,
            self.complaints()
        );
    }

    /// Presses the mouse (or a finger) on it, as a person would: it must be in sight and nothing may lie on it.
    pub async fn click(&self, selector: &str) {
        // A dialog is there a moment before it is open, and covers the page a moment after it was closed.
        let script = format!(
            "(() => {{
                const it = document.querySelector({0});
                if (!it || (it.disabled && it.tagName === 'BUTTON')) return null;
                it.scrollIntoView({{ block: 'nearest' }});
                // A link that runs over several lines is not in the middle of its box.
                const box = it.getClientRects()[0];
                if (!box) return null;
                const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
                if (!it.contains(document.elementFromPoint(x, y))) return null;
                window.isReached = false;
                it.addEventListener('click', () => {{ window.isReached = true; }}, {{ capture: true, once: true }});
                return {{ x, y }};
            }})()",
            json!(selector)
        );
        // What moves at that very moment is missed, and tried again, as a person does.
        for _ in 0..TRIES {
            let mut at = Value::Null;
            while at.is_null() {
                self.until(&format!("{script} !== null")).await;
                at = self.value(&script).await;
            }
            for kind in ["mousePressed", "mouseReleased"] {
                let press = json!({ "type": kind, "x": at["x"], "y": at["y"], "button": "left", "clickCount": 1 });
                self.send("Input.dispatchMouseEvent", press).await;
            }
            // A page that has gone knows nothing of it.
            if self.value("window.isReached !== false").await == true {
                return;
            }
        }
        panic!("{selector} cannot be pressed");
    }

    /// Writes into a field, which is empty or whose text is kept.
    pub async fn write(&self, selector: &str, text: &str) {
        self.click(selector).await;
        self.send("Input.insertText", json!({ "text": text })).await;
    }

    /// Chooses a file for a field, which a person does in a window of the browser's own.
    pub async fn upload(&self, selector: &str, file: &Path) {
        let find = json!({ "expression": format!("document.querySelector({})", json!(selector)) });
        let found = self.send("Runtime.evaluate", find).await;
        let field = &found["result"]["objectId"];
        assert!(field.is_string(), "{selector} is not there");
        let chosen = json!({ "files": [file.to_str().unwrap()], "objectId": field });
        self.send("DOM.setFileInputFiles", chosen).await;
    }

    /// Presses a key: `Tab`, `Enter`, `Escape`, `Space`, or what one types.
    pub async fn key(&self, key: &str) {
        let (name, code, number, text) = match key {
            "Tab" => ("Tab", "Tab", 9, None),
            "Enter" => ("Enter", "Enter", 13, Some("\r")),
            "Escape" => ("Escape", "Escape", 27, None),
            "Space" => (" ", "Space", 32, Some(" ")),
            typed => (typed, "", u32::from(typed.as_bytes()[0]), Some(typed)),
        };
        let mut event = json!({ "type": "keyDown", "key": name, "code": code, "windowsVirtualKeyCode": number });
        if let Some(text) = text {
            event["text"] = text.into();
        }
        self.send("Input.dispatchKeyEvent", event.clone()).await;
        event["type"] = "keyUp".into();
        self.send("Input.dispatchKeyEvent", event).await;
    }

    /// A picture in `target/screenshots/`, for people to look at: with `CALLBOARD_TEST_PICTURES` alone, for where there is no graphics
    /// card each takes as long as a small test.
    pub async fn picture(&self, name: &str) {
        if std::env::var_os("CALLBOARD_TEST_PICTURES").is_none() {
            return;
        }
        let answer = self.send("Page.captureScreenshot", json!({ "format": "png" })).await;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .parent()
            .unwrap()
            .join("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{name}-{}.png", self.screen.name));
        std::fs::write(&file, STANDARD.decode(answer["data"].as_str().unwrap()).unwrap()).unwrap();
    }

    /// Errors of its scripts and breaches of its policy, so far.
    pub fn complaints(&self) -> Vec<String> {
        self.link.complaints(&self.tab)
    }

    pub async fn close(self) {
        self.link
            .send(None, "Target.closeTarget", json!({ "targetId": self.target }))
            .await;
    }
}
