#!/usr/bin/env node
// Logs in at an OpenID provider with any browser, by the device grant (RFC 8628): plugin.mjs ISSUER CLIENT-ID
import { homedir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { openCredentialCache, readExecInfo, writeCredential } from 'sallyport/exec-plugin'

const grantType = 'urn:ietf:params:oauth:grant-type:device_code'
// What a provider sends must not move the cursor.
const plain = (text) => String(text).replace(/[^\x20-\x7e]/g, '?')
const say = (text) => process.stderr.write(`${plain(text)}\n`)

/** Tokens travel over TLS, or not at all beyond this machine. */
function checked(url) {
  const { protocol, hostname } = new URL(url)
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  if (protocol === 'https:' || (protocol === 'http:' && isLocal)) return url
  throw new Error(`${url} is not an https address`)
}

async function call(url, form) {
  const body = form && new URLSearchParams(form)
  const response = await fetch(checked(url), {
    method: body ? 'POST' : 'GET',
    body,
    redirect: 'error',
  })
  return { ok: response.ok, answer: await response.json() }
}

async function logIn(issuer, clientId) {
  const { answer: provider } = await call(`${issuer}/.well-known/openid-configuration`)
  if (provider.issuer !== issuer) throw new Error(`${issuer} says that it is another issuer`)
  const { ok, answer: device } = await call(provider.device_authorization_endpoint, {
    client_id: clientId,
    scope: 'openid',
  })
  if (!ok) throw new Error(`the provider refused: ${plain(device.error)}`)
  say(`To log in, open ${device.verification_uri} and enter the code ${device.user_code}`)
  return waitForToken(provider.token_endpoint, clientId, device)
}

async function waitForToken(endpoint, clientId, device) {
  const endsAt = Date.now() + device.expires_in * 1000
  let seconds = device.interval ?? 5
  while (Date.now() < endsAt) {
    await pause(seconds * 1000)
    const { ok, answer } = await call(endpoint, {
      grant_type: grantType,
      client_id: clientId,
      device_code: device.device_code,
    })
    if (ok) return { token: answer.id_token, expiresAt: expiryOf(answer.id_token) }
    if (answer.error === 'slow_down') seconds += 5
    else if (answer.error !== 'authorization_pending')
      throw new Error(`no login: ${plain(answer.error)}`)
  }
  throw new Error('no login: the code has expired')
}

/** The server verifies the token; here only its end matters. */
function expiryOf(token) {
  const payload = Buffer.from(token.split('.')[1], 'base64url').toString()
  return JSON.parse(payload).exp * 1000
}

try {
  const [issuer, clientId] = process.argv.slice(2)
  if (!issuer || !clientId) throw new Error('usage: plugin.mjs ISSUER CLIENT-ID')
  const info = readExecInfo(process.env)
  const directory = join(homedir(), '.kube', 'cache', 'oidc-device-login')
  const cache = await openCredentialCache(directory, { onSkip: say })
  const key = JSON.stringify([issuer, clientId])
  // A caller of the first version says why it asks: then what is kept is of no use.
  if (info.response?.code === 401) await cache.forget(key)
  const credential = await cache.getOrObtain(key, () => logIn(issuer, clientId))
  await writeCredential(info, credential, process.stdout)
} catch (error) {
  say(`oidc-device-login: ${error.message}`)
  process.exitCode = 1
}
