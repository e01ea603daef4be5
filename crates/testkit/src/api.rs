//! A client of the site's API.

use std::net::SocketAddr;

use serde_json::Value as Json;

use crate::http::{HttpReply, RawHttp};

/// A caller with a key, or without one.
#[derive(Clone, Debug)]
pub struct Api {
    server: SocketAddr,
    key: Option<String>,
}

#[derive(Clone, Debug)]
pub struct ApiReply {
    pub reply: HttpReply,
}

impl ApiReply {
    pub fn status(&self) -> u16 {
        self.reply.status()
    }

    /// The body, which must be JSON.
    #[track_caller]
    pub fn json(&self) -> Json {
        let body = String::from_utf8_lossy(&self.reply.body);
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{body:?} is not JSON: {error}"))
    }

    /// The body of a success, which must be JSON.
    #[track_caller]
    pub fn ok(&self) -> Json {
        let body = String::from_utf8_lossy(&self.reply.body);
        assert!((200..300).contains(&self.status()), "{}: {body}", self.reply.status_line);
        if body.is_empty() { Json::Null } else { self.json() }
    }
}

impl Api {
    /// A caller without a key.
    pub fn new(server: SocketAddr) -> Api {
        Api { server, key: None }
    }

    /// The same caller with this key.
    pub fn with_key(&self, key: &str) -> Api {
        Api { key: Some(key.to_owned()), ..self.clone() }
    }

    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    #[track_caller]
    pub fn get(&self, target: &str) -> ApiReply {
        self.send("GET", target, &[], None)
    }

    #[track_caller]
    pub fn post(&self, target: &str, body: &Json) -> ApiReply {
        self.send("POST", target, &[("content-type", "application/json")], Some(body.to_string().as_bytes()))
    }

    /// Sends JSON with another method.
    #[track_caller]
    pub fn json(&self, method: &str, target: &str, body: &Json) -> ApiReply {
        self.send(method, target, &[("content-type", "application/json")], Some(body.to_string().as_bytes()))
    }

    #[track_caller]
    pub fn delete(&self, target: &str) -> ApiReply {
        self.send("DELETE", target, &[], None)
    }

    /// Sends any request, on a connection of its own.
    #[track_caller]
    pub fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> ApiReply {
        let mut head =
            format!("{method} {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.server);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(key) = &self.key {
            head.push_str(&format!("x-api-key: {key}\r\n"));
        }
        if let Some(body) = body {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut connection = RawHttp::connect(self.server);
        connection.send(head.as_bytes());
        // A server that refuses the head need not read the body.
        let _ = connection.try_send(body.unwrap_or_default());
        ApiReply { reply: connection.read_reply() }
    }
}
