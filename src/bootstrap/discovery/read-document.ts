import { dirname, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { CommandFailed, openTrustedFile, systemErrorCode } from '../../core/index.ts'
import type { DocumentOrigin } from './document.ts'
import { connectionFailure, DiscoveryFailed } from './errors.ts'
import { type GetTerms, getVerified, largestAnswer, type RawAnswer, shownUrl } from './https-get.ts'

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
    if (length > largestAnswer) throw tooLarge(where)
    parts.push(bytes)
  }
  return Buffer.concat(parts)
}

/** Redirects that are followed, and only to https. */
const mostRedirects = 5

/** Fetches a document from an https URL whose certificate the given roots vouch for. */
export async function documentFromUrl(
  url: string,
  roots: readonly string[] | undefined,
  terms: GetTerms,
): Promise<FoundDocument> {
  let place = url
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    const answer = await fetchOnce(place, roots, terms)
    const where = shownUrl(place)
    if (answer.status === 200) return { text: decoded(answer.body, where), origin: { where } }
    place = redirectOf(answer, place)
  }
  throw unreadable(`${shownUrl(url)} redirects more than ${mostRedirects} times`)
}

async function fetchOnce(
  url: string,
  roots: readonly string[] | undefined,
  terms: GetTerms,
): Promise<RawAnswer> {
  const order = { url, headers: { accept: '*/*' }, ...terms }
  try {
    return await getVerified(order, roots ? { roots } : {})
  } catch (error) {
    throw connectionFailure(url, error, terms.signal, 'cannot prove who it is to this system')
  }
}

/** Where a redirect leads; throws for every other status. */
function redirectOf({ status, headers }: RawAnswer, from: string): string {
  const { location } = headers
  const isRedirect = [301, 302, 303, 307, 308].includes(status) && location !== undefined
  if (!isRedirect)
    throw new DiscoveryFailed('document-unreadable', `${shownUrl(from)} answered ${status}`, {
      hint: 'check the URL; if it needs a login, pipe it: curl ... | sallyport join --cluster-info-file -',
      mayPass: status === 404 || status === 429 || status >= 500,
    })
  const to = URL.canParse(location, from) ? new URL(location, from) : undefined
  if (to?.protocol === 'https:' && to.username === '' && to.password === '') return to.href
  throw unreadable(`${shownUrl(from)} redirects to somewhere that is no https URL`)
}

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
