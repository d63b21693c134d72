import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readFileIfPresent, replaceFile } from '../../core/index.ts'
import { discoveryPath, jwksPath } from '../documents/documents.ts'
import type { PublicDocument, PublicDocuments } from './public-documents.ts'

/** Content type and caching of each file, for the configuration of a static host. */
const manifestName = 'sallyport-publish.json'

/** Readable by all users: the documents are public. */
const mode = 0o644

/**
 * Writes both documents for a static host, atomically and only if they have changed. The key set is written first:
 * clients that read in between may find an additional key, never a missing one. Returns the names of written files.
 */
export async function writeDocuments(
  directory: string,
  documents: PublicDocuments,
): Promise<string[]> {
  const jwksFile = jwksPathBelow(documents)
  const files: [string, string][] = [
    [jwksFile, documents.jwks.body.toString()],
    [discoveryPath.slice(1), documents.discovery.body.toString()],
    [manifestName, manifestOf(documents, jwksFile)],
  ]
  const written: string[] = []
  for (const [name, content] of files) {
    const path = join(directory, name)
    if ((await readFileIfPresent(path)) === content) continue
    await mkdir(dirname(path), { recursive: true })
    await replaceFile(path, content, mode)
    written.push(name)
  }
  return written
}

/** The path of the key set by `jwks_uri`, if that is below the issuer. */
function jwksPathBelow({ issuer, jwksUri }: PublicDocuments): string {
  const below = `${issuer.replace(/\/$/, '')}/`
  const path = jwksUri.startsWith(below) ? jwksUri.slice(below.length) : ''
  const isPlain = /^[\w.-]+(?:\/[\w.-]+)*$/.test(path) && !path.split('/').includes('..')
  return isPlain ? path : jwksPath.slice(1)
}

function manifestOf(documents: PublicDocuments, jwksFile: string): string {
  const entry = (path: string, { body, contentType, cacheControl }: PublicDocument) => ({
    path,
    contentType,
    cacheControl,
    sha256: createHash('sha256').update(body).digest('hex'),
  })
  const files = [
    entry(jwksFile, documents.jwks),
    entry(discoveryPath.slice(1), documents.discovery),
  ]
  const { issuer, jwksUri } = documents
  return `${JSON.stringify({ issuer, jwksUri, files }, undefined, 2)}\n`
}
