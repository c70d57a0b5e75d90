"""One picture per idea, as SVG for slides: each drawn from something that ran just now, none by hand.

| module | draws | from |
|---|---|---|
| system | Figure 1: producers, brokers, consumers | a live cluster |
| log | Figure 2: the list of first offsets, the files, a box per message | a live broker's directory |
| copies | the four copies against two | system calls counted while a broker sends |
| ownership | who owns which partition, over time | a live cluster through four generations |
| generations | what each rebalance changed | the same |
| offsets | end, flushed end and stored offset over time | the same |
| sequence | JoinGroup, SyncGroup, Heartbeat | requests of real members, seen on their way to a broker |
"""
