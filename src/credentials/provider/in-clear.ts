import type { CredentialSource } from '../credential.ts'
import { authorizationOf } from '../transport/identity-headers.ts'
import type { RequestWrapper } from './transport-config.ts'

/** Sends the credential as a header even where anybody on the way can read it; the caller's own header wins. */
export const inClear =
  (source: CredentialSource): RequestWrapper =>
  (next) =>
  async (request) => {
    if (request.headers['authorization'] !== undefined) return next(request)
    const authorization = authorizationOf(await source.current(request.signal))
    return next(
      authorization === undefined
        ? request
        : { ...request, headers: { ...request.headers, authorization } },
    )
  }
