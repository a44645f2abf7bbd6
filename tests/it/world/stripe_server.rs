//! A real local server that speaks as much of Stripe as top-ups need: it opens Checkout Sessions, once per
//! `Idempotency-Key`, tells of them when asked, and signs notices. It checks what it is sent as Stripe does.
use super::http_server::serve;
use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{self, Bytes, Data, Path},
};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

pub const SECRET_KEY: &str = "sk_test_localstripe0123456789";
pub const NOTICE_SECRET: &str = "whsec_local_stripe_notices";

/// What happens to a request instead of its answer.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Nothing is done.
    Refuse(u16),
    /// It is done, and its answer is lost.
    Lose,
}

/// A page as Stripe was asked to open it.
#[derive(Clone, Debug)]
pub struct Opened {
    pub form: BTreeMap<String, String>,
    pub idempotency_key: String,
    pub version: String,
    pub session: Value,
}

#[derive(Default)]
struct State {
    opened: Mutex<Vec<Opened>>,
    faults: Mutex<VecDeque<Fault>>,
    /// `METHOD path` of each request.
    requests: Mutex<Vec<String>>,
}

pub struct StripeServer {
    pub url: String,
    state: Arc<State>,
    handle: actix_web::dev::ServerHandle,
}

impl StripeServer {
    pub fn start() -> Self {
        let state = Arc::new(State::default());
        let data = Data::from(state.clone());
        let (url, handle) = serve(move |config| {
            config
                .app_data(data.clone())
                .route("/v1/checkout/sessions", web::post().to(open))
                .route("/v1/checkout/sessions/{id}", web::get().to(look));
        });
        StripeServer { url, state, handle }
    }

    /// What happens to the next requests.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.faults.lock().unwrap().extend(faults);
    }

    pub fn opened(&self) -> Vec<Opened> {
        self.state.opened.lock().unwrap().clone()
    }

    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.requests.lock().unwrap())
    }

    /// The page of that top-up.
    pub fn session_of(&self, topup: &str) -> Value {
        let opened = self.opened();
        let found = opened.iter().find(|page| page.session["client_reference_id"] == topup);
        found.unwrap_or_else(|| panic!("no page for {topup}")).session.clone()
    }

    /// Somebody pays on that top-up's page; answers the page, the payment and the charge as they are then.
    pub fn pay(&self, topup: &str) -> Paid {
        let mut opened = self.state.opened.lock().unwrap();
        let page = opened
            .iter_mut()
            .find(|page| page.session["client_reference_id"] == topup);
        let session = &mut page.unwrap().session;
        session["status"] = json!("complete");
        session["payment_status"] = json!("paid");
        session["payment_intent"] = json!(format!("pi_{topup}"));
        Paid {
            session: session.clone(),
        }
    }

    /// Its time is over.
    pub fn expire(&self, topup: &str) -> Value {
        let mut opened = self.state.opened.lock().unwrap();
        let page = opened
            .iter_mut()
            .find(|page| page.session["client_reference_id"] == topup);
        let session = &mut page.unwrap().session;
        session["status"] = json!("expired");
        session.clone()
    }
}

impl Drop for StripeServer {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}

/// A page that was paid on, and what Stripe tells of it.
#[derive(Clone)]
pub struct Paid {
    pub session: Value,
}

impl Paid {
    pub fn intent(&self) -> Value {
        let Value::Object(session) = &self.session else {
            panic!("no session")
        };
        json!({ "id": session["payment_intent"], "object": "payment_intent", "amount": session["amount_total"],
            "amount_received": session["amount_total"], "currency": session["currency"],
            "metadata": session["metadata"], "status": "succeeded" })
    }
    /// The charge, of which so much was paid back in all.
    pub fn charge(&self, refunded: i64) -> Value {
        let session = &self.session;
        json!({ "id": "ch_1", "object": "charge", "amount": session["amount_total"],
            "amount_captured": session["amount_total"], "amount_refunded": refunded, "currency": session["currency"],
            "payment_intent": session["payment_intent"], "metadata": session["metadata"], "paid": true })
    }
}

/// A notice's body.
pub fn notice(kind: &str, object: &Value) -> String {
    json!({ "id": "evt_1", "object": "event", "api_version": "2025-03-31.basil", "type": kind, "livemode": false,
        "data": { "object": object } })
    .to_string()
}

/// `Stripe-Signature`, at that Unix second.
pub fn sign(secret: &str, at: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{at}.{body}").as_bytes());
    let digest = mac.finalize().into_bytes();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={at},v1={hex},v0={}", "0".repeat(64))
}

fn error(status: u16, code: &str, message: &str) -> HttpResponse {
    let status = StatusCode::from_u16(status).unwrap();
    HttpResponse::build(status).json(json!({ "error": { "type": code, "message": message } }))
}

/// As a careless server would say it.
fn key_in(request: &HttpRequest) -> String {
    header(request, "authorization")
}

fn header(request: &HttpRequest, name: &str) -> String {
    let value = request.headers().get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// Why a request is not even looked at, if so.
fn refused(request: &HttpRequest, fault: Option<Fault>) -> Option<HttpResponse> {
    if let Some(Fault::Refuse(status)) = fault {
        let words = format!("Something is wrong with {}", key_in(request));
        return Some(error(status, "api_error", &words));
    }
    let is_known = header(request, "authorization") == format!("Bearer {SECRET_KEY}");
    (!is_known).then(|| error(401, "invalid_request_error", "Invalid API Key provided"))
}

async fn open(request: HttpRequest, body: Bytes, state: Data<State>) -> HttpResponse {
    state.requests.lock().unwrap().push("POST /v1/checkout/sessions".into());
    let fault = state.faults.lock().unwrap().pop_front();
    if let Some(refusal) = refused(&request, fault) {
        return refusal;
    }
    if header(&request, "content-type") != "application/x-www-form-urlencoded" {
        return error(400, "invalid_request_error", "Invalid content type");
    }
    let form: BTreeMap<String, String> = url::form_urlencoded::parse(&body).into_owned().collect();
    let key = header(&request, "idempotency-key");
    let mut opened = state.opened.lock().unwrap();
    let session = match opened.iter().find(|known| known.idempotency_key == key) {
        Some(known) if known.form != form => {
            return error(
                400,
                "idempotency_error",
                "Keys can only be used with the same parameters",
            );
        }
        Some(known) => known.session.clone(),
        None => {
            let number = opened.len() + 1;
            let (Ok(amount), true) = (
                form["line_items[0][price_data][unit_amount]"].parse::<i64>(),
                form["mode"] == "payment" && form["success_url"].starts_with("http") && !key.is_empty(),
            ) else {
                return error(400, "invalid_request_error", "Invalid parameters");
            };
            let session = json!({ "id": format!("cs_test_{number}"), "object": "checkout.session", "status": "open",
                "payment_status": "unpaid", "payment_intent": null, "amount_total": amount,
                "currency": form["line_items[0][price_data][currency]"], "client_reference_id": form["client_reference_id"],
                "metadata": { "topup_id": form["metadata[topup_id]"] },
                "url": format!("https://checkout.stripe.test/c/pay/cs_test_{number}") });
            opened.push(Opened {
                form,
                idempotency_key: key,
                version: header(&request, "stripe-version"),
                session: session.clone(),
            });
            session
        }
    };
    match fault {
        Some(Fault::Lose) => error(500, "api_error", "lost"),
        Some(Fault::Refuse(_)) | None => HttpResponse::Ok().json(session),
    }
}

async fn look(request: HttpRequest, id: Path<String>, state: Data<State>) -> HttpResponse {
    state
        .requests
        .lock()
        .unwrap()
        .push(format!("GET /v1/checkout/sessions/{id}"));
    let fault = state.faults.lock().unwrap().pop_front();
    if let Some(refusal) = refused(&request, fault) {
        return refusal;
    }
    let opened = state.opened.lock().unwrap();
    match opened.iter().find(|page| page.session["id"] == id.as_str()) {
        Some(page) => HttpResponse::Ok().json(&page.session),
        None => error(404, "invalid_request_error", "No such checkout session"),
    }
}
