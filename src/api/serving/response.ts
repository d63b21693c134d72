import type { ServerResponse } from 'node:http'
import { setImmediate as immediately } from 'node:timers/promises'
import { ApiError } from '../../core/index.ts'
import { acceptedTypes, waitForClient } from '../../http/index.ts'

/** How an answer is to look: which view of the object, in which encoding. */
export interface ResponseForm {
  readonly view: 'object' | 'table' | 'metadata'
  readonly encoding: 'json' | 'yaml'
}

const plain: ResponseForm = { view: 'object', encoding: 'json' }
const viewOf: Readonly<Record<string, ResponseForm['view']>> = {
  Table: 'table',
  PartialObjectMetadata: 'metadata',
  PartialObjectMetadataList: 'metadata',
}
/** The media types that can be asked for, and those that an error message names. */
interface Offer {
  readonly encodings: Readonly<Record<string, ResponseForm['encoding']>>
  readonly named: string
  // Clients send the same few Accept headers with every request.
  readonly known: Map<string, ResponseForm>
}

const wholeAnswers: Offer = {
  encodings: {
    'application/json': 'json',
    'application/yaml': 'yaml',
    'application/*': 'json',
    '*/*': 'json',
  },
  named: 'application/json, application/yaml',
  known: new Map(),
}

const streams: Offer = {
  encodings: { 'application/json': 'json', 'application/*': 'json', '*/*': 'json' },
  named: 'application/json;stream=watch',
  known: new Map(),
}

const maxKnown = 256

/** 406 that says what can be had. */
export const notAcceptable = (named: string = wholeAnswers.named): ApiError =>
  new ApiError('NotAcceptable', `only the following media types are accepted: ${named}`)

function negotiate(accept: string, { encodings, named }: Offer): ResponseForm {
  for (const { type, subtype, params } of acceptedTypes(accept)) {
    const encoding = encodings[`${type}/${subtype}`]
    if (!encoding) continue
    const wanted = params['as']
    if (wanted === undefined) return { view: 'object', encoding }
    const view = viewOf[wanted]
    if (view && params['g'] === 'meta.k8s.io' && params['v'] === 'v1') return { view, encoding }
  }
  throw notAcceptable(named)
}

function bestForm(accept: string | undefined, offer: Offer): ResponseForm {
  if (accept === undefined || accept === '' || accept === 'application/json') return plain
  const before = offer.known.get(accept)
  if (before) return before
  const form = negotiate(accept, offer)
  if (offer.known.size >= maxKnown) offer.known.clear()
  offer.known.set(accept, form)
  return form
}

/** The best form of a whole answer that the Accept header allows; throws a 406. */
export const responseForm = (accept: string | undefined): ResponseForm =>
  bestForm(accept, wholeAnswers)

/** The best form of the events of a watch that the Accept header allows; throws a 406. */
export const streamForm = (accept: string | undefined): ResponseForm => bestForm(accept, streams)

/** Writes one value as YAML. */
export type YamlWriter = (value: unknown) => string

/** Longer objects are sent in YAML's flow style, which is JSON: the library takes far too long for them. */
const maxBlockYamlLength = 32 * 1024

/** Loads the YAML library, which few answers need. */
export async function loadYamlWriter(): Promise<YamlWriter> {
  const { stringify } = await import('yaml')
  // Texts of several lines in quotes: as blocks, the library loses spaces at the start of some of them.
  return (value) => {
    const json = JSON.stringify(value, undefined, 2)
    if (json.length > maxBlockYamlLength) return `${json}\n`
    return stringify(value, { aliasDuplicateObjects: false, blockQuote: false, lineWidth: 0 })
  }
}

const jsonType = 'application/json'

/** Sends finished JSON bytes. */
export function sendJsonBytes(response: ServerResponse, code: number, body: Buffer): void {
  response.writeHead(code, { 'Content-Type': jsonType, 'Content-Length': body.length })
  response.end(body)
}

/** Sends a value in the encoding that was asked for. */
export async function sendValue(
  response: ServerResponse,
  code: number,
  value: unknown,
  options: { readonly encoding: ResponseForm['encoding']; readonly pretty?: boolean },
): Promise<void> {
  if (options.encoding === 'json') {
    const text = options.pretty ? JSON.stringify(value, undefined, 2) : JSON.stringify(value)
    sendJsonBytes(response, code, Buffer.from(options.pretty ? text : `${text}\n`))
    return
  }
  const asYaml = await loadYamlWriter()
  const body = Buffer.from(asYaml(value))
  response.writeHead(code, { 'Content-Type': 'application/yaml', 'Content-Length': body.length })
  response.end(body)
}

/** What may wait in memory for a client that does not read. */
const maxWaitingBytes = 2 ** 20
/** How long the making of pieces may keep everybody else waiting. */
const sliceMs = 10

/**
 * Writes pieces as fast as the client reads, and makes each only when it is needed: an answer of any
 * size costs little memory, and one that takes long to make leaves room for others in between.
 */
export async function writePaced(
  response: ServerResponse,
  pieces: Iterable<Buffer>,
  isOver: () => boolean = () => false,
): Promise<void> {
  let sliceEnd = performance.now() + sliceMs
  response.cork()
  for (const piece of pieces) {
    if (response.destroyed || isOver()) break
    const isFlowing = response.write(piece)
    const isFull = !isFlowing && response.writableLength > maxWaitingBytes
    if (!isFull && performance.now() < sliceEnd) continue
    response.uncork()
    await (isFull ? waitForClient(response) : immediately())
    sliceEnd = performance.now() + sliceMs
    response.cork()
  }
  response.uncork()
}
