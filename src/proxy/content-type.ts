import { extname } from 'node:path'

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
export const contentTypeOf = (path: string): string =>
  types[extname(path).toLowerCase()] ?? 'application/octet-stream'
