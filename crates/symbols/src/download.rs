//! Getting what is missing on this machine, for all modules at once.

use std::sync::Mutex;

use crate::debuginfod::{Client, Kind};
use crate::files::SymbolFiles;
use crate::files::locate;
use crate::found::Found;
use crate::options::{Debuginfod, SymbolOptions};
use crate::progress::Watch;

/// So many downloads at a time: servers are slow to answer, and not to be flooded.
const AT_ONCE: usize = 8;

/// Downloads the files that queries need and that are not here.
pub(crate) fn missing(
    found: &mut [Found],
    debuginfod: &Debuginfod,
    options: &SymbolOptions,
    watch: Watch<'_>,
) {
    let wanting: Vec<&mut Found> = found
        .iter_mut()
        .filter(|found| is_wanting(found, options))
        .collect();
    let threads = wanting.len().min(AT_ONCE);
    let client = Client::new(debuginfod, watch);
    let queue = Mutex::new(wanting.into_iter());
    let next = || queue.lock().ok()?.next();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(found) = next() {
                    complete(found, &client, options);
                }
            });
        }
    });
}

fn is_wanting(found: &Found, options: &SymbolOptions) -> bool {
    match found {
        Found::Files(Ok(files)) => files.want_debug_info(options),
        Found::Files(Err((_, build_id))) => build_id.is_some(),
        Found::Partly(parts) => is_wanting(&parts.1, options),
        Found::Unnamed(parts) => is_wanting(&parts.1, options),
        _ => false,
    }
}

fn complete(found: &mut Found, client: &Client<'_>, options: &SymbolOptions) {
    let files = match found {
        Found::Files(files) => files,
        Found::Partly(parts) => return complete(&mut parts.1, client, options),
        Found::Unnamed(parts) => return complete(&mut parts.1, client, options),
        _ => return,
    };
    if let Err((status, Some(id))) = files {
        let name = status.path().and_then(|path| path.file_name());
        let name = name.unwrap_or_default().to_string_lossy();
        let located = client
            .fetch(*id, Kind::Executable, &name)
            .ok()
            .and_then(|path| locate::checked(&path, Some(*id)).ok());
        if let Some(main) = located {
            *files = Ok(Box::new(SymbolFiles::find(main, options)));
        }
    }
    if let Ok(files) = files
        && files.want_debug_info(options)
    {
        files.download_debug_info(client);
    }
}
