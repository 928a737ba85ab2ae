// The page and the service share an origin, as they would behind a proxy. Otherwise set `CORS_ORIGINS`; where that is set,
// sockets need the origin of the service.
const target = process.env['HOSTLINE'] ?? 'http://localhost:3000'

export default { server: { proxy: { '/v1': { target, ws: true, rewriteWsOrigin: true } } } }
