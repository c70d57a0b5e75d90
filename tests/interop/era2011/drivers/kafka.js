// kafka 0.2.3: `publish HOST PORT TOPIC message…` or `read HOST PORT TOPIC count`, which prints a JSON list.
const { Consumer, Producer } = require('kafka')
const [verb, host, port, topic, ...rest] = process.argv.slice(2)

if (verb === 'publish') {
  const producer = new Producer({ host, port: Number(port), topic, partition: 0 })
  producer.connect(() => {
    producer.send(rest)
    producer.close()
  })
} else {
  const consumer = new Consumer({ host, port: Number(port), pollInterval: 50 })
  const found = []
  consumer.on('message', (name, message) => {
    found.push(message)
    if (found.length < Number(rest[0])) return
    console.log(JSON.stringify(found))
    process.exit(0)
  })
  consumer.connect(() => consumer.subscribeTopic({ name: topic, partition: 0 }))
}
