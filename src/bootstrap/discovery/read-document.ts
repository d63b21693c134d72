import { dirname, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { CommandFailed, openTrustedFile, systemErrorCode } from '../../core/index.ts'
import { FetchError, type FetchedDocument, urlWithoutQuery } from '../../http/fetch/index.ts'
import type { DocumentOrigin } from './document.ts'
import { connectionFailure, DiscoveryFailed } from './errors.ts'
import { maxDocumentBytes, maxRedirects } from './limits.ts'
import { fetchTraced, type RequestContext } from './requests.ts'

/** A document's text and where it came from. */
export interface FoundDocument {
  readonly text: string
  readonly origin: DocumentOrigin
}

const fileFailures: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this user may not read it',
  EISDIR: 'it is a directory',
}

/** Reads a document from a file; a CA that it names by a path is read from beside it. */
export async function documentFromFile(path: string): Promise<FoundDocument> {
  const text = await readSmallFile(path, path)
  const readCa = (ca: string) => readSmallFile(resolve(dirname(path), ca), `${path}: the CA ${ca}`)
  return { text, origin: { where: path, readCa } }
}

async function readSmallFile(path: string, where: string): Promise<string> {
  try {
    // Not by its size: a pipe or a device has none and may have no end.
    const file = await openTrustedFile(path, 'given')
    return decoded(await smallBytes(file.createReadStream(), where), where)
  } catch (error) {
    if (error instanceof DiscoveryFailed || error instanceof CommandFailed) throw error
    const code = systemErrorCode(error) ?? 'unknown error'
    throw unreadable(`cannot read ${where}: ${fileFailures[code] ?? code}`, error)
  }
}

/** Reads a document from a stream to its end, as from the standard input. */
export async function documentFromStream(stream: Readable, where: string): Promise<FoundDocument> {
  const text = decoded(await smallBytes(stream, where), where)
  if (text.trim() !== '') return { text, origin: { where } }
  throw unreadable(`there is nothing in ${where}: it ended before any document`)
}

async function smallBytes(stream: Readable, where: string): Promise<Buffer> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of stream) {
    const bytes = Buffer.isBuffer(part) ? part : Buffer.from(String(part))
    length += bytes.length
    if (length > maxDocumentBytes) throw tooLarge(where)
    parts.push(bytes)
  }
  return Buffer.concat(parts)
}

/** Fetches a document from an https URL whose certificate is signed by one of the given roots. */
export async function documentFromUrl(
  url: string,
  roots: readonly string[] | undefined,
  context: RequestContext,
): Promise<FoundDocument> {
  let from = url
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const found = await fetchOnce(from, roots, context)
    if (typeof found !== 'string') return textOf(found, from)
    from = found
  }
  throw unreadable(`${shown(url)} redirects more than ${maxRedirects} times`)
}

/** A response, or the target of a redirect. */
async function fetchOnce(
  url: string,
  roots: readonly string[] | undefined,
  context: RequestContext,
): Promise<FetchedDocument | string> {
  const request = { url, headers: { accept: '*/*' }, ...context }
  try {
    return await fetchTraced(request, roots ? { ca: roots } : {})
  } catch (error) {
    if (error instanceof FetchError) {
      if (error.code === 'redirected') return redirectOf(error, url)
      if (error.code === 'bad-content-type')
        throw unreadable(`${shown(url)}: ${error.reason}`, error)
    }
    throw connectionFailure(url, error, context.signal, 'cannot prove who it is to this system')
  }
}

function redirectOf({ status, location }: FetchError, from: string): string {
  if (location === undefined || ![301, 302, 303, 307, 308].includes(status ?? 0))
    throw badStatus(from, status ?? 0)
  const to = URL.canParse(location, from) ? new URL(location, from) : undefined
  if (to?.protocol === 'https:' && to.username === '' && to.password === '') return to.href
  throw unreadable(`${shown(from)} redirects to somewhere that is no https URL`)
}

function textOf({ status, body }: FetchedDocument, url: string): FoundDocument {
  if (status !== 200) throw badStatus(url, status)
  const where = shown(url)
  return { text: decoded(body, where), origin: { where } }
}

const badStatus = (url: string, status: number): DiscoveryFailed =>
  new DiscoveryFailed('document-unreadable', `${shown(url)} answered ${status}`, {
    hint: 'check the URL; if it needs a login, pipe it: curl ... | sallyport join --cluster-info-file -',
    mayPass: status === 404 || status === 429 || status >= 500,
  })

const shown = (url: string): string => urlWithoutQuery(new URL(url))

function decoded(bytes: Buffer, where: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw unreadable(`${where} is no text in UTF-8`, cause)
  }
}

const tooLarge = (where: string): DiscoveryFailed =>
  unreadable(`${where} has more than 1 MiB, so it is no document of a cluster`)

const unreadable = (message: string, cause?: unknown): DiscoveryFailed =>
  new DiscoveryFailed('document-unreadable', message, {
    hint: 'name a kubeconfig that says where the cluster is, or use a token instead',
    cause,
  })
