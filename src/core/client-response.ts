import type { ClientRequest, IncomingMessage } from 'node:http'

/**
 * Waits for the response to a client request, which is not yet ended. Rejects when the server switches protocols:
 * without a listener Node.js closes the connection then and reports neither a response nor an error, so that a single
 * packet would make a caller wait for ever.
 */
export function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    let hasResponse = false
    request.once('response', (response) => {
      hasResponse = true
      resolve(response)
    })
    request.on('error', reject) // stays: a cut after the head of the response is reported here as well
    request.once('upgrade', (_response, socket) => socket.destroy())
    request.once('close', () => {
      // After every response too, and an error is expensive.
      if (!hasResponse) reject(noResponse())
    })
  })
}

/** The code that llhttp has for a switch of protocols. */
const noResponse = (): Error =>
  Object.assign(new Error('the connection was closed or switched to another protocol'), {
    code: 'HPE_PAUSED_UPGRADE',
  })
