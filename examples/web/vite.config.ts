// The page and the service share an origin, as they would behind a proxy. Otherwise set `CORS_ORIGINS`.
const target = process.env['HOSTLINE'] ?? 'http://localhost:3000'

export default { server: { proxy: { '/v1': { target, ws: true } } } }
