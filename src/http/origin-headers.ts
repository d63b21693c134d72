/**
 * Response headers by which a server speaks for its whole origin: that its data be wiped, that it be requested
 * elsewhere or by TLS only, to whom browsers report, what they remember about it, or how its users log in.
 */
const originHeaders: ReadonlySet<string> = new Set([
  'accept-ch',
  'activate-storage-access',
  'alt-svc',
  'clear-site-data',
  'critical-ch',
  'delegate-ch',
  'expect-ct',
  'idp-signin-status',
  'nel',
  'observe-browsing-topics',
  'origin-agent-cluster',
  'origin-trial',
  'p3p',
  'public-key-pins',
  'public-key-pins-report-only',
  'report-to',
  'reporting-endpoints',
  'sec-session-challenge',
  'sec-session-registration',
  'secure-session-challenge',
  'secure-session-registration',
  'service-worker-allowed',
  'set-login',
  'speculation-rules',
  'strict-transport-security',
  'supports-loading-mode',
  'timing-allow-origin',
  'use-as-dictionary',
  'www-authenticate',
  'x-permitted-cross-domain-policies',
])

/** CORS lets other origins read here; attribution and shared storage keep data for the origin. */
const originPrefixes = /^(?:access-control-|attribution-reporting-|shared-storage-)/

/**
 * Whether a response header, in lower case, is one that an add-on may not send on an origin that it shares with the
 * API and with other add-ons.
 */
export const isOriginHeader = (name: string): boolean =>
  originHeaders.has(name) || originPrefixes.test(name)
