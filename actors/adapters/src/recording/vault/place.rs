//! Where objects are kept: a folder of this machine, or a bucket that speaks S3.
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
    local::LocalFileSystem,
    path::Path as ObjectPath,
};
use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use url::Url;

/// How an S3 store is reached; nothing of it matters for a folder.
#[derive(Clone, Default)]
pub struct S3Options {
    /// Of a store that is not Amazon's, e.g. `https://minio.example.com:9000`.
    pub endpoint: Option<String>,
    /// `us-east-1` when not said.
    pub region: Option<String>,
    /// Both keys, or neither: then the machine's role gives them (EC2 metadata).
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<String>,
    /// Speaks plain HTTP to an `http://` endpoint.
    pub allow_http: bool,
}

impl fmt::Debug for S3Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (endpoint, region) = (&self.endpoint, &self.region);
        write!(f, "S3Options({endpoint:?}, {region:?}, ***)")
    }
}

#[derive(Clone)]
pub enum Place {
    Folder(PathBuf),
    /// Objects' names begin with it; empty, or ending in `/`.
    Bucket {
        prefix: String,
    },
}

impl Place {
    pub fn path(&self, name: &str) -> ObjectPath {
        match self {
            Place::Folder(_) => ObjectPath::from(name),
            Place::Bucket { prefix } => ObjectPath::from(format!("{prefix}{name}")),
        }
    }
}

/// A step of the talk with the store; an upload is sent in parts, each of which may take so long.
const TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the place's address: a path, `file:///path` or `s3://bucket/prefix`. A folder is made when it is not there.
pub fn open(url: &str, s3: &S3Options) -> Result<(Arc<dyn ObjectStore>, Place), String> {
    if !url.contains("://") {
        return folder(Path::new(url));
    }
    // The address itself is not shown: it may hold a password.
    let parsed =
        Url::parse(url).map_err(|_| "the recordings' place is not a URL; write s3://bucket/prefix".to_owned())?;
    if !parsed.username().is_empty() || parsed.password().is_some() || parsed.query().is_some() {
        return Err("the recordings' place is an address only; keys have settings of their own".to_owned());
    }
    match parsed.scheme() {
        "file" => {
            let path = parsed.to_file_path().map_err(|()| "write file:///path".to_owned())?;
            folder(&path)
        }
        "s3" => bucket(&parsed, s3),
        other => Err(format!(
            "`{other}` is not a place for recordings; write a path, file:///path or s3://bucket/prefix"
        )),
    }
}

fn folder(path: &Path) -> Result<(Arc<dyn ObjectStore>, Place), String> {
    let fail =
        |error: &dyn fmt::Display| format!("the recordings' folder `{}` cannot be used: {error}", path.display());
    if path.as_os_str().is_empty() {
        return Err("the recordings' place is empty; write a path, file:///path or s3://bucket/prefix".to_owned());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| fail(&error))?;
    let root = path.canonicalize().map_err(|error| fail(&error))?;
    // What is said to be stored survives a power cut.
    let store = LocalFileSystem::new_with_prefix(&root)
        .map_err(|error| fail(&error))?
        .with_fsync(true);
    Ok((Arc::new(store), Place::Folder(root)))
}

fn bucket(url: &Url, s3: &S3Options) -> Result<(Arc<dyn ObjectStore>, Place), String> {
    let name = url.host_str().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| "write s3://bucket/prefix".to_owned())?;
    let prefix = ObjectPath::from_url_path(url.path())
        .map_err(|_| "the prefix in the bucket has an empty part or a character that is not allowed".to_owned())?;
    let prefix = match prefix.as_ref() {
        "" => String::new(),
        prefix => format!("{prefix}/"),
    };
    Ok((Arc::new(client(name, s3)?), Place::Bucket { prefix }))
}

fn client(bucket: &str, s3: &S3Options) -> Result<AmazonS3, String> {
    let options = ClientOptions::new()
        .with_timeout(TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT);
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_region(s3.region.as_deref().unwrap_or("us-east-1"))
        .with_client_options(options.with_allow_http(s3.allow_http))
        // Not all stores know the bulk form.
        .with_disable_bulk_delete(true)
        .with_retry(RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: 3,
            retry_timeout: TIMEOUT,
        });
    if let Some(endpoint) = &s3.endpoint {
        if endpoint.starts_with("http://") && !s3.allow_http {
            return Err("the store's endpoint is plain HTTP, which must be allowed in its settings".to_owned());
        }
        builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
    }
    builder = match (&s3.access_key_id, &s3.secret_access_key) {
        (Some(id), Some(secret)) => builder.with_access_key_id(id).with_secret_access_key(secret),
        (None, None) => builder,
        _ => return Err("the store's access key id and secret access key must be given together".to_owned()),
    };
    builder
        .build()
        .map_err(|error| format!("the store cannot be used: {error}"))
}

/// Removes what writes of an object that never ended left beside it. They count from 1 (`<file>#1`), so that no folder
/// with thousands of files is read for it. Blocks.
pub fn clear(root: &Path, name: &str) -> io::Result<()> {
    for begun in 1.. {
        match std::fs::remove_file(root.join(format!("{name}#{begun}"))) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes an object of a folder and what a write that never ended left beside it (`<file>#<number>`), for good: a power
/// cut does not bring them back. Blocks.
pub fn erase(root: &Path, name: &str) -> io::Result<()> {
    let file = root.join(name);
    let (Some(folder), Some(plain)) = (file.parent(), file.file_name()) else {
        return Ok(());
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let begun = format!("{}#", plain.to_string_lossy());
    for entry in entries {
        let entry = entry?;
        if entry.file_name() != plain && !entry.file_name().to_string_lossy().starts_with(&begun) {
            continue;
        }
        match std::fs::remove_file(entry.path()) {
            // Two may erase at once.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::File::open(folder)?.sync_all()
}
