//! What a room's link shows: the page on which a person talks with the agent, and one page for every link that is not good.
use actix_web::{
    HttpResponse, HttpResponseBuilder,
    http::header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use serde::Serialize;

/// No inline script or style, nothing from elsewhere, and in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The microphone, and a phone's screen that stays on while its owner talks.
const PERMISSIONS: &str = "microphone=(self), screen-wake-lock=(self), autoplay=(self), camera=(), display-capture=(), \
    geolocation=(), payment=(), usb=(), serial=(), hid=(), bluetooth=(), midi=(), fullscreen=(), publickey-credentials-get=()";

/// What both pages begin with, without the last line's end.
const TOP: &str = include_str!("room/top.html").trim_ascii_end();

/// What the page says and needs beside the agent's name.
pub struct View<'a> {
    /// The talk may be recorded: the page says so before anybody joins.
    pub recorded: bool,
    pub ice_servers: &'a [IceServer],
}

/// One server for `RTCPeerConnection`'s `iceServers`, named as browsers name it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IceServer {
    /// `stun:host:port`, `turn:host:port?transport=udp`, `turns:…`.
    pub urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

/// The page of a link that is good. It finds its own link in the address bar, so that nothing of it stands in the text.
pub fn page(agent_name: &str, room: &View<'_>) -> HttpResponse {
    let ice_servers = serde_json::json!(room.ice_servers).to_string();
    let recorded = if room.recorded {
        include_str!("room/recorded.html")
    } else {
        ""
    };
    let (agent, ice_servers) = (escaped(agent_name), escaped(&ice_servers));
    let blanks = [
        ("top", TOP),
        ("agent", agent.as_str()),
        ("ice_servers", &ice_servers),
        ("recorded", recorded),
    ];
    answer(HttpResponse::Ok()).body(filled(include_str!("room/page.html"), &blanks))
}

/// The page of every other link: forged, expired or over, always the same.
pub fn gone() -> HttpResponse {
    answer(HttpResponse::NotFound()).body(filled(include_str!("room/gone.html"), &[("top", TOP)]))
}

fn answer(mut builder: HttpResponseBuilder) -> HttpResponseBuilder {
    builder
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((HeaderName::from_static("permissions-policy"), PERMISSIONS))
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((X_FRAME_OPTIONS, "DENY"))
        .insert_header((HeaderName::from_static("x-robots-tag"), "noindex, nofollow"))
        .content_type("text/html; charset=utf-8");
    builder
}

/// The text with each `{{blank}}` filled, in one go: what fills one is not searched for others.
fn filled(text: &str, blanks: &[(&str, &str)]) -> String {
    let mut parts = text.split("{{");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("}}").unwrap_or((part, ""));
        if let Some((_, value)) = blanks.iter().find(|(blank, _)| *blank == name) {
            whole.push_str(value);
        }
        whole.push_str(rest);
    }
    whole
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::{
        body::{MessageBody, to_bytes},
        http::StatusCode,
    };

    async fn text(response: HttpResponse) -> String {
        let body = to_bytes(response.into_body().boxed()).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[actix_web::test]
    async fn names_are_text_and_fill_nothing_else() {
        let turn = IceServer {
            urls: vec!["turn:turn.example:3478".into()],
            username: Some("\"><script>".into()),
            credential: None,
        };
        let view = View {
            recorded: true,
            ice_servers: &[turn],
        };
        let html = text(page("<b>Ann & \"Bo's\" {{ice_servers}}", &view)).await;
        assert!(html.contains("<title>Talk with &lt;b&gt;Ann &amp; &quot;Bo&#39;s&quot; {{ice_servers}}</title>"));
        assert!(html.contains("data-ice-servers=\"[{&quot;urls&quot;:[&quot;turn:turn.example:3478&quot;]"));
        assert!(!html.contains("<script>") && !html.contains("<b>"), "{html}");
        assert!(html.contains("may be recorded"));
        let quiet = View {
            recorded: false,
            ice_servers: &[],
        };
        let html = text(page("Ann", &quiet)).await;
        assert!(!html.contains("recorded") && html.contains("data-ice-servers=\"[]\"") && !html.contains("{{"));
    }

    #[actix_web::test]
    async fn nobody_frames_keeps_or_enriches_it() {
        let view = View {
            recorded: false,
            ice_servers: &[],
        };
        for (response, status) in [(page("Ann", &view), StatusCode::OK), (gone(), StatusCode::NOT_FOUND)] {
            assert_eq!(response.status(), status);
            for (name, value) in [
                ("cache-control", "no-store"),
                ("referrer-policy", "no-referrer"),
                ("x-frame-options", "DENY"),
                ("x-content-type-options", "nosniff"),
                ("x-robots-tag", "noindex, nofollow"),
                ("content-security-policy", POLICY),
                ("permissions-policy", PERMISSIONS),
            ] {
                assert_eq!(response.headers().get(name).unwrap(), value);
            }
            let html = text(response).await;
            assert!(!html.contains(" style=") && !html.contains("<style") && !html.contains(" onclick="));
        }
    }
}
