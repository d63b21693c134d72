import { open, readdir, realpath, stat } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, join, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { escapeHtml } from './home-page.ts'
import { pageNotFound, Refusal } from './refusal.ts'

/** A part of a file: from its first to its last byte. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** The part that a Range header asks for: none if it is to be ignored, `unsatisfiable` if the file has no such part. */
export function readRange(
  header: string | undefined,
  size: number,
): ByteRange | 'unsatisfiable' | undefined {
  const text = header?.trim() ?? ''
  const suffix = /^bytes=-(\d{1,15})$/.exec(text)
  if (suffix) return within(Math.max(0, size - Number(suffix[1])), size - 1)
  const found = /^bytes=(\d{1,15})-(\d{0,15})$/.exec(text)
  if (!found) return undefined
  const start = Number(found[1])
  const last = found[2] ? Number(found[2]) : size - 1
  if (found[2] && last < start) return undefined
  return within(start, Math.min(last, size - 1))
}

const within = (start: number, end: number): ByteRange | 'unsatisfiable' =>
  start <= end ? { start, end } : 'unsatisfiable'

const text = '; charset=utf-8'

const types: Readonly<Record<string, string>> = {
  '.avif': 'image/avif',
  '.css': `text/css${text}`,
  '.csv': `text/csv${text}`,
  '.gif': 'image/gif',
  '.htm': `text/html${text}`,
  '.html': `text/html${text}`,
  '.ico': 'image/x-icon',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.js': `text/javascript${text}`,
  '.json': 'application/json',
  '.map': 'application/json',
  '.md': `text/markdown${text}`,
  '.mjs': `text/javascript${text}`,
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': `text/plain${text}`,
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
  '.webp': 'image/webp',
  '.woff': 'font/woff',
  '.woff2': 'font/woff2',
  '.xml': `text/xml${text}`,
  '.yaml': `application/yaml${text}`,
  '.yml': `application/yaml${text}`,
}

/** The content type of a file by its name; the content is never asked, it may be anybody's. */
const contentTypeOf = (path: string): string =>
  types[extname(path).toLowerCase()] ?? 'application/octet-stream'

/** Serves the files of one directory, as kubectl does. */
export class StaticFiles {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Answers for a decoded path below the prefix, without a slash in front. */
  async serve(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new Refusal(405, 'Method Not Allowed', { Allow: 'GET, HEAD' })
    if (/(?:^|\/)index\.html$/.test(path)) {
      redirect(response, './')
      return
    }
    const file = await this.#find(path.replace(/\/$/, ''))
    const { isDirectory } = file
    const name = path.replace(/\/$/, '').split('/').at(-1) ?? ''
    if (isDirectory && path !== '' && !path.endsWith('/'))
      redirect(response, `${encodeURIComponent(name)}/`)
    else if (!isDirectory && path.endsWith('/'))
      redirect(response, `../${encodeURIComponent(name)}`)
    else if (isDirectory) await this.#serveDirectory(path, request, response)
    else await sendFile(file.path, request, response)
  }

  async #serveDirectory(
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const index = await this.#find(`${path}index.html`).catch(() => undefined)
    if (index && !index.isDirectory) {
      await sendFile(index.path, request, response)
      return
    }
    const { path: directory } = await this.#find(path)
    const entries = await readdir(directory, { withFileTypes: true })
    const names = entries.map((entry) => entry.name + (entry.isDirectory() ? '/' : ''))
    const page = directoryPage(names.sort())
    response.writeHead(200, {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Length': Buffer.byteLength(page),
    })
    response.end(page)
  }

  /** Links may lead about inside the directory; what lies outside is not there. */
  async #find(path: string): Promise<{ readonly path: string; readonly isDirectory: boolean }> {
    if (/\0|(?:^|[/\\])\.\.(?:[/\\]|$)/.test(path)) throw pageNotFound()
    try {
      const root = await realpath(this.#directory)
      const found = await realpath(join(root, path))
      const isInside = found === root || found.startsWith(root.endsWith(sep) ? root : root + sep)
      const stats = await stat(found)
      if (isInside && (stats.isDirectory() || stats.isFile()))
        return { path: found, isDirectory: stats.isDirectory() }
    } catch {
      // Missing or not to be read: for the client there is no difference.
    }
    throw pageNotFound()
  }
}

function redirect(response: ServerResponse, location: string): void {
  response.writeHead(301, { Location: location, 'Content-Length': 0 }).end()
}

function directoryPage(names: readonly string[]): string {
  const links = names.map((name) => {
    const href = name.split('/').map(encodeURIComponent).join('/')
    return `<a href="./${href}">${escapeHtml(name)}</a>`
  })
  return [
    '<!doctype html>',
    '<meta name="viewport" content="width=device-width">',
    '<meta name="color-scheme" content="light dark">',
    '<pre>',
    ...links,
    '</pre>',
    '',
  ].join('\n')
}

async function sendFile(
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const file = await open(path, 'r').catch(() => {
    throw pageNotFound()
  })
  try {
    const { size, mtime } = await file.stat()
    const headers = {
      'Accept-Ranges': 'bytes',
      'Content-Type': contentTypeOf(path),
      'Last-Modified': mtime.toUTCString(),
      'X-Content-Type-Options': 'nosniff',
    }
    if (isFresh(request, mtime)) {
      response.writeHead(304, headers).end()
      return
    }
    const range = readRange(request.headers.range, size)
    if (range === 'unsatisfiable')
      throw new Refusal(416, 'Range Not Satisfiable', { 'Content-Range': `bytes */${size}` })
    response.writeHead(range ? 206 : 200, {
      ...headers,
      'Content-Length': range ? range.end - range.start + 1 : size,
      ...(range && { 'Content-Range': `bytes ${range.start}-${range.end}/${size}` }),
    })
    if (request.method === 'HEAD' || size === 0) response.end()
    else await pipeline(file.createReadStream({ ...range, autoClose: false }), response)
  } finally {
    await file.close()
  }
}

function isFresh({ headers }: IncomingMessage, mtime: Date): boolean {
  const since = Date.parse(headers['if-modified-since'] ?? '')
  return Math.floor(mtime.getTime() / 1_000) * 1_000 <= since
}
