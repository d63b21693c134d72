import type { IncomingHttpHeaders } from 'node:http'
import {
  ApiError,
  httpCodeOf,
  isRecord,
  SallyportError,
  type StatusCause,
  type StatusDetails,
  type StatusReason,
} from '../core/index.ts'
import { ConnectionFailed } from '../credentials/transport/index.ts'

export {
  ClientConfigInvalid,
  ConnectionFailed,
  connectionFailed,
} from '../credentials/transport/index.ts'

/** No whole answer came in time. */
export class RequestTimedOut extends ConnectionFailed {
  override readonly code = 'CLIENT_REQUEST_TIMED_OUT'
}

/** An answer came that no Kubernetes API server should give. */
export class AnswerInvalid extends SallyportError {
  readonly code = 'CLIENT_ANSWER_INVALID'
}

type Fields = Record<string, unknown>

const isReason = (value: unknown): value is StatusReason =>
  typeof value === 'string' && Object.hasOwn(httpCodeOf, value)

/** What a bare HTTP code means where Kubernetes has two reasons for it, or none. */
const reasonOfCode: Readonly<Record<number, StatusReason>> = {
  409: 'Conflict',
  410: 'Expired',
  500: 'InternalError',
}

function reasonFor(code: number): StatusReason {
  const known = Object.keys(httpCodeOf).find((key) => isReason(key) && httpCodeOf[key] === code)
  const fallback = code >= 500 ? 'InternalError' : 'BadRequest'
  return reasonOfCode[code] ?? (isReason(known) ? known : fallback)
}

function textFields<Name extends string>(
  from: Fields,
  names: readonly Name[],
): { [key in Name]?: string } {
  const found = names.filter((name) => typeof from[name] === 'string')
  return Object.fromEntries(found.map((name) => [name, from[name]])) as { [key in Name]?: string }
}

function causesIn(value: unknown): StatusCause[] {
  if (!Array.isArray(value)) return []
  return value.filter(isRecord).map((cause) => ({
    ...textFields(cause, ['reason', 'field']),
    message: typeof cause['message'] === 'string' ? cause['message'] : '',
  }))
}

function detailsIn(status: Fields, retryAfter: string | undefined): StatusDetails | undefined {
  const sent = isRecord(status['details']) ? status['details'] : {}
  const causes = causesIn(sent['causes'])
  const seconds = sent['retryAfterSeconds'] ?? Number(retryAfter?.trim() || Number.NaN)
  const details: StatusDetails = {
    ...textFields(sent, ['name', 'group', 'kind', 'uid']),
    ...(causes.length > 0 && { causes }),
    ...(Number.isSafeInteger(seconds) && { retryAfterSeconds: Number(seconds) }),
  }
  return Object.keys(details).length > 0 ? details : undefined
}

/** The failure that a Status object reports; a reason that we do not know becomes that of its code. */
export function statusError(
  status: Fields,
  http: { readonly code: number; readonly retryAfter?: string | undefined },
): ApiError {
  const code = Number.isSafeInteger(status['code']) ? Number(status['code']) : http.code
  const { reason, message } = status
  const details = detailsIn(status, http.retryAfter)
  const metadata = isRecord(status['metadata']) ? status['metadata'] : {}
  const continueToken = metadata['continue']
  return new ApiError(
    isReason(reason) ? reason : reasonFor(code),
    typeof message === 'string' && message !== '' ? message : `the server answered ${code}`,
    {
      ...(details && { details }),
      ...(typeof continueToken === 'string' && { continueToken }),
      ...(isReason(reason) ? {} : { detail: `code ${code}, reason ${JSON.stringify(reason)}` }),
    },
  )
}

/** A Status object, whether it reports success or failure. */
export const isStatus = (value: unknown): value is Fields =>
  isRecord(value) && value['kind'] === 'Status'

/**
 * The failure behind an answer with an error code. Text that is no Status comes from whatever stands
 * in front of the server, which may echo the request, so none of it is repeated.
 */
export function answerError(
  code: number,
  headers: IncomingHttpHeaders,
  body: Buffer | undefined,
): ApiError {
  const retryAfter = headers['retry-after']
  const status = body && parsed(body)
  return statusError(isStatus(status) ? status : {}, { code, retryAfter })
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}
