// What a request tells of its user, and of the way on which it learned that.

const decode = (part) => {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString())
  } catch {
    return undefined
  }
}

/** Header and claims of a token, for people to read; whether it is good was the guard's to decide. */
export function describeToken(token) {
  const [header, claims] = (token ?? '').split('.').map(decode)
  if (!header || !claims) return undefined
  const { x5c, ...shown } = header
  return {
    header: {
      ...shown,
      ...(x5c && { x5c: x5c.length === 1 ? '1 certificate' : `${x5c.length} certificates` }),
    },
    claims,
  }
}

/** The answer to "who am I". */
export function identityOf(request, user) {
  const { user: name, uid, groups, audience, tokenId, auditId, expiresAt } = user
  return {
    user: name,
    uid,
    groups,
    audience,
    tokenId,
    auditId,
    expiresAt,
    now: Date.now(),
    outerPath: request.headers['x-forwarded-uri'],
    // Every header that the add-on was sent: no credential is among them.
    headers: Object.entries(request.headers).map(([key, value]) => [key, String(value)]),
  }
}
