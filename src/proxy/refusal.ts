import { SallyportError } from '../core/index.ts'

/** A request that the proxy answers itself because it must not go on. */
export class Refusal extends SallyportError {
  readonly code = 'PROXY_REFUSED'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

/** 400: the request can be read in two ways, or in none. */
export const malformed = (why: string): Refusal => new Refusal(400, `Bad Request: ${why}`)

/** 403: the request is understood and not let through. */
export const forbidden = (why: string): Refusal => new Refusal(403, `Forbidden: ${why}`)

/** 404 in kubectl's words. */
export const pageNotFound = (): Refusal => new Refusal(404, '404 page not found')
