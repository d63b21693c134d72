/**
 * Whether a token can be sent: beyond ASCII clients do not agree on the bytes, and spaces are none of a
 * token (RFC 6750 §2.1).
 */
export const isSendableToken = (token: string): boolean => /^[\x21-\x7e]+$/.test(token)
